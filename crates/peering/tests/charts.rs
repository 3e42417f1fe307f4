//! What the charts and this operator must agree on.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spillway_peering::virtual_node::forge::{CLUSTER_ROLE, NODE_LEASE_ROLE, TENANT_ROLE};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn chart(file: &str) -> String {
    let path = root().join("manifests/charts").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn yaml_files(directory: &str) -> BTreeMap<String, String> {
    fs::read_dir(root().join(directory))
        .expect(directory)
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("readable"))
        })
        .collect()
}

#[test]
fn the_chart_of_the_definitions_has_the_generated_ones() {
    let (generated, shipped) = (yaml_files("crds"), yaml_files("manifests/charts/spillway-crds/files"));
    assert!(!generated.is_empty());
    let drifted: Vec<_> =
        generated.keys().chain(shipped.keys()).filter(|name| generated.get(*name) != shipped.get(*name)).collect();
    assert!(drifted.is_empty(), "run `make crds`: {drifted:?} differ");
}

#[test]
fn every_role_that_is_bound_is_shipped_and_may_be_bound() {
    let (defined, bindable) =
        (chart("spillway-virtual-kubelet/templates/rbac.yaml"), chart("spillway-peering/templates/rbac.yaml"));
    for role in [CLUSTER_ROLE, TENANT_ROLE, NODE_LEASE_ROLE] {
        assert!(defined.contains(&format!("  name: {role}\n")), "{role} is not defined");
        assert!(bindable.contains(&format!("      - {role}\n")), "{role} may not be bound");
    }
}
