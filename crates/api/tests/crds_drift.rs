//! The checked-in definitions are those that the types define.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use spillway_api::crds;

mod yaml;

fn directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")
}

#[test]
fn checked_in_definitions_are_current() {
    for crd in crds::all() {
        let path = directory().join(crds::file_name(&crd));
        let checked_in = fs::read_to_string(&path).unwrap_or_default();
        assert!(checked_in == yaml::print(&crd).unwrap(), "{} is out of date: run make crds", path.display());
    }
}

#[test]
fn nothing_else_is_checked_in() {
    let expected: BTreeSet<String> = crds::all().iter().map(crds::file_name).collect();
    let found: BTreeSet<String> = fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(found, expected, "run make crds");
}

#[test]
fn yaml_says_what_the_definitions_say() {
    for crd in crds::all() {
        let read_back: Value = serde_saphyr::from_str(&yaml::print(&crd).unwrap()).unwrap();
        assert_eq!(read_back, serde_json::to_value(&crd).unwrap(), "{}", crds::file_name(&crd));
    }
}
