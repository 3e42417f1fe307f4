//! A full and a minimal manifest of every kind survive decoding and encoding.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::BTreeSet, fs, path::Path};

use rstest::rstest;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use spillway_api::{
    authentication::{Identity, Renew, ResourceSlice, Tenant},
    core::ForeignCluster,
    crds,
    networking::{Configuration, GatewayClient, GatewayServer},
    offloading::{
        NamespaceMap, NamespaceOffloading, Quota, ShadowEndpointSlice, ShadowPod, VirtualNode, VkOptionsTemplate,
    },
};

fn manifest(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples").join(format!("{name}.yaml"));
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn round_trip<K: DeserializeOwned + Serialize>(manifest: &Value) -> Value {
    serde_json::to_value(K::deserialize(manifest).unwrap()).unwrap()
}

/// Whether both say the same. A quantity may be written as a number and come back as a string.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len() && left.iter().all(|(key, value)| right.get(key).is_some_and(|r| same(value, r)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Number(left), Value::String(right)) => left.to_string() == *right,
        _ => left == right,
    }
}

/// What the API server fills in for itself.
fn with_defaults(mut manifest: Value) -> Value {
    let defaults = match manifest["kind"].as_str().unwrap() {
        "NamespaceOffloading" => {
            json!({ "namespaceMappingStrategy": "DefaultName", "podOffloadingStrategy": "LocalAndRemote" })
        }
        "Tenant" => json!({ "authzPolicy": "KeysExchange", "tenantCondition": "Active" }),
        _ => json!({}),
    };
    for (field, default) in defaults.as_object().unwrap() {
        manifest["spec"].as_object_mut().unwrap().entry(field.clone()).or_insert(default.clone());
    }
    manifest
}

#[rstest]
#[case::namespace_offloading("namespaceoffloading", round_trip::<NamespaceOffloading>)]
#[case::namespace_map("namespacemap", round_trip::<NamespaceMap>)]
#[case::shadow_pod("shadowpod", round_trip::<ShadowPod>)]
#[case::shadow_endpoint_slice("shadowendpointslice", round_trip::<ShadowEndpointSlice>)]
#[case::virtual_node("virtualnode", round_trip::<VirtualNode>)]
#[case::vk_options_template("vkoptionstemplate", round_trip::<VkOptionsTemplate>)]
#[case::quota("quota", round_trip::<Quota>)]
#[case::resource_slice("resourceslice", round_trip::<ResourceSlice>)]
#[case::tenant("tenant", round_trip::<Tenant>)]
#[case::identity("identity", round_trip::<Identity>)]
#[case::renew("renew", round_trip::<Renew>)]
#[case::foreign_cluster("foreigncluster", round_trip::<ForeignCluster>)]
#[case::configuration("configuration", round_trip::<Configuration>)]
#[case::gateway_server("gatewayserver", round_trip::<GatewayServer>)]
#[case::gateway_client("gatewayclient", round_trip::<GatewayClient>)]
fn survives_a_round_trip(
    #[case] kind: &str,
    #[case] round_trip: fn(&Value) -> Value,
    #[values("full", "minimal")] size: &str,
) {
    let manifest = with_defaults(manifest(&format!("{kind}-{size}")));
    let back = round_trip(&manifest);
    assert!(same(&manifest, &back), "sent:\n{manifest:#}\ncame back:\n{back:#}");
}

#[test]
fn every_kind_has_both_examples() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let found: BTreeSet<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let expected: BTreeSet<String> = crds::all()
        .iter()
        .filter_map(|crd| crd.spec.names.singular.clone())
        .flat_map(|kind| [format!("{kind}-full.yaml"), format!("{kind}-minimal.yaml")])
        .collect();
    assert_eq!(found, expected);
}

/// Full means full: every field that a schema names is set by the example, down to where Kubernetes' own types begin.
#[test]
fn full_examples_set_every_field_of_ours() {
    for crd in crds::all() {
        let kind = crd.spec.names.singular.clone().unwrap();
        let schema = serde_json::to_value(&crd).unwrap();
        let schema = &schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_sets_all(&kind, schema, &[&manifest(&format!("{kind}-full"))]);
    }
}

fn assert_sets_all(path: &str, schema: &Value, values: &[&Value]) {
    if schema["x-kubernetes-preserve-unknown-fields"] == json!(true) {
        return;
    }
    for (property, nested) in schema["properties"].as_object().into_iter().flatten() {
        let set: Vec<&Value> = values.iter().filter_map(|value| value.get(property)).collect();
        assert!(!set.is_empty(), "{path}.{property} is not set");
        assert_sets_all(&format!("{path}.{property}"), nested, &set);
    }
    let elements: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
    assert_sets_some(path, &schema["items"], &elements);
    let entries: Vec<&Value> =
        values.iter().filter_map(|value| value.as_object()).flat_map(|map| map.values()).collect();
    assert_sets_some(path, &schema["additionalProperties"], &entries);
}

fn assert_sets_some(path: &str, schema: &Value, values: &[&Value]) {
    if schema.is_object() {
        assert!(!values.is_empty(), "{path} is empty");
        assert_sets_all(path, schema, values);
    }
}
