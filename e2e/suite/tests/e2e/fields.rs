//! The table of a pod's fields against the schema of the API server.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::Value;
use spillway_e2e::Side;
use spillway_virtual_kubelet::pods::fields::POD_SPEC;

#[tokio::test]
async fn every_field_of_a_pod_spec_is_accounted_for() -> Result<()> {
    let home = Side::connect(crate::testbed(), "home").await?;
    let request = Request::get("/openapi/v3/api/v1").body(Vec::new())?;
    let schema: Value = home.client.request(request).await?;
    let properties = schema
        .pointer("/components/schemas/io.k8s.api.core.v1.PodSpec/properties")
        .and_then(Value::as_object)
        .context("the schema of a pod spec")?;
    ensure!(properties.len() > 30, "the schema is whole: {} fields", properties.len());
    let rows: BTreeSet<_> = POD_SPEC.iter().map(|(field, _)| *field).collect();
    let missing: Vec<_> = properties.keys().filter(|field| !rows.contains(field.as_str())).collect();
    ensure!(missing.is_empty(), "fields without a row in the table: {missing:?}");
    Ok(())
}
