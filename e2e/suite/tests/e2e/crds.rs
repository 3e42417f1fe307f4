//! The API on a real API server: every example of every kind goes in and comes out whole, and bad values are refused.

use std::fs;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use spillway_e2e::install;

use crate::offloaded;

/// Every field of `given` is in `got`.
fn contains(given: &Value, got: &Value, path: &str) -> Result<()> {
    match (given, got) {
        (Value::Object(given), Value::Object(got)) => {
            for (field, value) in given {
                let path = format!("{path}.{field}");
                contains(value, got.get(field).with_context(|| format!("{path} was lost"))?, &path)?;
            }
            Ok(())
        }
        (Value::Array(given), Value::Array(got)) if given.len() == got.len() => given
            .iter()
            .zip(got)
            .enumerate()
            .try_for_each(|(i, (given, got))| contains(given, got, &format!("{path}[{i}]"))),
        _ => {
            ensure!(given == got, "{path}: {given} became {got}");
            Ok(())
        }
    }
}

fn examples() -> Result<Vec<(String, Value)>> {
    let folder = install::root().join("crates/api/tests/examples");
    let mut examples = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("no examples in {}", folder.display()))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let example = serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", path.display()))?;
        examples.push((path.display().to_string(), example));
    }
    Ok(examples)
}

fn api(client: kube::Client, namespace: &str, object: &Value) -> Result<Api<DynamicObject>> {
    let (version, kind) =
        (object["apiVersion"].as_str().context("apiVersion")?, object["kind"].as_str().context("kind")?);
    let (group, version) = version.split_once('/').context("a group")?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Ok(if kind == "ForeignCluster" {
        Api::all_with(client, &resource)
    } else {
        Api::namespaced_with(client, namespace, &resource)
    })
}

#[tokio::test]
async fn every_example_of_every_kind_comes_back_whole() -> Result<()> {
    offloaded(async |namespace| {
        let params = PatchParams::apply("example").force();
        let examples = examples()?;
        ensure!(examples.len() == 30, "a full and a minimal one of 15 kinds, not {}", examples.len());
        for (file, mut example) in examples {
            if let Some(metadata) = example["metadata"].as_object_mut() {
                metadata.remove("namespace");
            }
            let api = api(namespace.away.client.clone(), &namespace.twin, &example)?;
            let name = example["metadata"]["name"].as_str().context("a name")?.to_owned();
            let mut without_status = example.clone();
            without_status.as_object_mut().context("an object")?.remove("status");
            let mut got =
                api.patch(&name, &params, &Patch::Apply(&without_status)).await.with_context(|| file.clone())?;
            if let Some(status) = example.get("status") {
                let patch = Patch::Merge(json!({"status": status}));
                got = api.patch_status(&name, &PatchParams::default(), &patch).await.with_context(|| file.clone())?;
            }
            contains(&example, &json!(got), "").with_context(|| file.clone())?;
            api.delete(&name, &Default::default()).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn bad_values_are_refused_in_words() -> Result<()> {
    offloaded(async |namespace| {
        let kind = |group: &str, kind: &str, name: &str, spec: Value| {
            json!({"apiVersion": format!("{group}.liqo.io/v1beta1"), "kind": kind, "metadata": {"name": name}, "spec": spec})
        };
        let offloading = |name: &str, spec: Value| kind("offloading", "NamespaceOffloading", name, spec);
        let refused = [
            (offloading("offloading", json!({"podOffloadingStrategy": "Everywhere"})), "LocalAndRemote"),
            (offloading("offloading", json!({"namespaceMappingStrategy": "SelectedName"})), "remoteNamespaceName"),
            (offloading("other", json!({})), "offloading"),
            (kind("offloading", "Quota", "q", json!({"user": "u", "resources": {"cpu": "much"}})), "resources"),
            (kind("offloading", "VirtualNode", "v", json!({"clusterID": "Not A Label"})), "clusterID"),
        ];
        for (object, expected) in refused {
            let api = api(namespace.away.client.clone(), &namespace.twin, &object)?;
            let object: DynamicObject = serde_json::from_value(object)?;
            let error = api.create(&Default::default(), &object).await.err().with_context(|| format!("accepted: {object:?}"))?;
            ensure!(error.to_string().contains(expected), "{expected} is not in: {error}");
        }
        Ok(())
    })
    .await
}
