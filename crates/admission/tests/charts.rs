//! What the chart and this operator must agree on.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may")]

use std::fs;
use std::path::Path;

use spillway_admission::{NAME, SECRET, handlers};
use spillway_api::well_known::label;

fn template(file: &str) -> String {
    let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/charts/spillway-admission/templates");
    fs::read_to_string(charts.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn every_webhook_of_the_chart_is_served_and_every_one_that_is_served_is_in_the_chart() {
    let webhooks = template("_helpers.tpl");
    let mut called: Vec<_> =
        webhooks.lines().filter_map(|line| line.trim().strip_prefix("path: ")).map(str::to_owned).collect();
    let mut served: Vec<_> = handlers().iter().map(|handler| handler.path().to_owned()).collect();
    called.sort();
    served.sort();
    assert_eq!(called, served);
    assert_eq!(webhooks.matches(&format!("      name: {NAME}\n")).count(), called.len(), "all by the one Service");
    assert_eq!(webhooks.matches(label::WEBHOOK_SKIP).count(), 2 * called.len(), "by object and by namespace");
}

#[test]
fn the_names_are_those_of_the_rights() {
    let (objects, rights) = (template("admission.yaml"), template("rbac.yaml"));
    assert_eq!(objects.matches(&format!("  name: {NAME}\n")).count(), 2, "Service and configuration");
    assert!(rights.contains(&format!("resourceNames: [{NAME}]")));
    assert!(rights.contains(&format!(r#""resourceNames" (list "{SECRET}")"#)));
}
