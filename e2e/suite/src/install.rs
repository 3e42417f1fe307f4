//! Builds the image, brings the clusters up and installs Spillway with its Helm charts, as a user would.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};
use spillway_testbed::{Spec, Testbed, image};

/// Where Spillway is installed; the namespace that existing clients look in by default.
pub const NAMESPACE: &str = "liqo";
const REPOSITORY: &str = "spillway/spillway";
const BINARIES: [&str; 4] = ["admission", "peering", "shadow-pod", "virtual-kubelet"];

/// The image as loaded into the clusters.
#[derive(Clone, Debug)]
pub struct Image {
    pub tag: String,
    pub archive: PathBuf,
}

/// The root of the checkout.
pub fn root() -> PathBuf {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR"));
    suite.ancestors().nth(2).unwrap_or(suite).to_owned()
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Builds the release binaries and the image. The tag is a digest of the content: a change is rolled out, no change is not.
pub fn build_image() -> Result<Image> {
    let mut build = Command::new("cargo");
    build.current_dir(root()).args(["build", "--release"]);
    // What the cargo that runs this test says of this package would make build scripts of dependencies run anew.
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            build.env_remove(variable);
        }
    }
    for binary in BINARIES {
        build.args(["-p", &format!("spillway-{binary}")]);
    }
    succeed(&mut build)?;
    let binaries = BINARIES.map(str::to_owned);
    let archive = target().join("spillway-image.tar");
    let mut digest = Sha256::new();
    for binary in &binaries {
        digest.update(std::fs::read(target().join("release").join(binary))?);
    }
    let hex: String = digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("dev-{hex}");
    image::product::build(&target().join("release"), &binaries, &format!("{REPOSITORY}:{tag}"), &archive)?;
    Ok(Image { tag, archive })
}

/// Two clusters with the image loaded.
pub fn clusters(name: &str, spec: &Spec, image: &Image) -> Result<Testbed> {
    let testbed = Testbed::up(name, spec)?;
    testbed.load_image(&image.archive, None)?;
    Ok(testbed)
}

/// One `helm upgrade --install --wait` of a chart of ours.
pub struct Release<'a> {
    pub name: &'a str,
    pub chart: &'a str,
    pub settings: Vec<String>,
}

/// The folder of a chart of ours, with its dependencies from next door in place.
fn chart(testbed: &Testbed, cluster: &str, name: &str) -> Result<PathBuf> {
    let chart = root().join("manifests/charts").join(name);
    let mut helm = testbed.helm(cluster)?;
    helm.args(["dependency", "update", "--skip-refresh"]).arg(&chart);
    succeed(&mut helm)?;
    Ok(chart)
}

/// The objects that a chart would install, as YAML.
pub fn render(testbed: &Testbed, cluster: &str, name: &str, settings: &[&str]) -> Result<String> {
    let mut helm = testbed.helm(cluster)?;
    helm.args(["template", "rendered"]).arg(chart(testbed, cluster, name)?);
    for setting in settings {
        helm.args(["--set", setting]);
    }
    let output = helm.output().context("cannot run helm")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

pub fn release(testbed: &Testbed, cluster: &str, release: &Release<'_>) -> Result<()> {
    let chart = chart(testbed, cluster, release.chart)?;
    let mut helm = testbed.helm(cluster)?;
    helm.args([
        "upgrade",
        "--install",
        "--wait",
        "--timeout",
        "3m",
        "--create-namespace",
        "--namespace",
        NAMESPACE,
        release.name,
    ]);
    helm.arg(&chart);
    for setting in &release.settings {
        helm.args(["--set", setting]);
    }
    succeed(&mut helm)
}

/// Installs the umbrella chart with the given roles.
pub fn umbrella(testbed: &Testbed, cluster: &str, image: &Image, consumer: bool, provider: bool) -> Result<()> {
    release(testbed, cluster, &Release { name: "spillway-crds", chart: "spillway-crds", settings: vec![] })?;
    let settings = vec![
        format!("global.image.tag={}", image.tag),
        format!("consumer.enabled={consumer}"),
        format!("provider.enabled={provider}"),
    ];
    release(testbed, cluster, &Release { name: "spillway", chart: "spillway", settings })
}

/// Runs a command and fails with what it printed.
pub fn succeed(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("cannot run {shown}"))?;
    ensure!(
        output.status.success(),
        "{shown} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
