//! The product's image, built from a program at hand.

use std::fs;
use std::path::{Path, PathBuf};

use spillway_testbed::image::product;

fn this_program() -> (PathBuf, Vec<String>) {
    (Path::new(env!("CARGO_BIN_EXE_testbed")).with_file_name(""), vec!["testbed".to_owned()])
}

#[test]
fn the_same_binaries_give_the_same_archive() {
    let folder = tempfile::tempdir().unwrap();
    let (bin_dir, binaries) = this_program();
    let [first, second] = ["first.tar", "second.tar"].map(|name| folder.path().join(name));
    for out in [&first, &second] {
        product::build(&bin_dir, &binaries, "spillway/spillway:test", out).unwrap();
    }
    assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "the archives differ");
}

#[test]
fn the_tree_holds_the_program_its_loader_and_the_authorities_but_no_shell() {
    let folder = tempfile::tempdir().unwrap();
    let (bin_dir, binaries) = this_program();
    let root = folder.path().join("root");
    product::rootfs(&bin_dir, &binaries).unwrap().write_directory(&root).unwrap();
    assert!(root.join("usr/bin/testbed").exists());
    assert!(root.join("etc/ssl/certs/ca-certificates.crt").exists());
    assert!(fs::read_to_string(root.join("etc/passwd")).unwrap().contains("nonroot:x:65532:65532:"));
    assert!(!root.join("bin/sh").exists());
}

#[test]
fn a_tag_that_kubelets_always_pull_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (bin_dir, binaries) = this_program();
    let out = folder.path().join("image.tar");
    assert!(product::build(&bin_dir, &binaries, "spillway:latest", &out).is_err());
    assert!(product::build(&bin_dir, &binaries, "spillway", &out).is_err());
}
