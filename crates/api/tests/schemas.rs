//! The definitions have the names, the scope and the shape that clients rely on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use serde_json::{Map, Value};
use spillway_api::crds;

/// Plural and group, kind, scope, short names, has a status, printer columns.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str], bool, &'static [&'static str]);

const EXPECTED: [Row; 15] = [
    (
        "identities.authentication.liqo.io",
        "Identity",
        "Namespaced",
        &["id"],
        true,
        &["Type", "KubeconfigSecret", "Age"],
    ),
    ("renews.authentication.liqo.io", "Renew", "Namespaced", &[], true, &["Age"]),
    (
        "resourceslices.authentication.liqo.io",
        "ResourceSlice",
        "Namespaced",
        &["rslice"],
        true,
        &["Authentication", "Resources", "Age"],
    ),
    ("tenants.authentication.liqo.io", "Tenant", "Namespaced", &["tn"], true, &["Condition", "Age"]),
    ("foreignclusters.core.liqo.io", "ForeignCluster", "Cluster", &["fc"], true, &["Role", "ClusterID", "Age"]),
    (
        "configurations.networking.liqo.io",
        "Configuration",
        "Namespaced",
        &["conf"],
        true,
        &[
            "Desired Pod CIDR ",
            "Remapped Pod CIDR",
            "Age",
            "Desired External CIDR",
            "Remapped External CIDR",
            "ClusterID",
        ],
    ),
    (
        "gatewayclients.networking.liqo.io",
        "GatewayClient",
        "Namespaced",
        &["gwc", "gwclient"],
        true,
        &["Template Kind", "Template Name", "Template Namespace", "IP", "Port", "Protocol", "MTU", "Age"],
    ),
    (
        "gatewayservers.networking.liqo.io",
        "GatewayServer",
        "Namespaced",
        &["gws", "gwserver"],
        true,
        &["Template Kind", "Template Name", "Template Namespace", "IP", "Port", "Protocol", "MTU", "Age"],
    ),
    ("namespacemaps.offloading.liqo.io", "NamespaceMap", "Namespaced", &["nm", "nsmap"], true, &["Local", "Age"]),
    (
        "namespaceoffloadings.offloading.liqo.io",
        "NamespaceOffloading",
        "Namespaced",
        &["nso", "nsof", "nsoff", "nsoffloading"],
        true,
        &["NamespaceMappingStrategy", "PodOffloadingStrategy", "OffloadingPhase", "RemoteNamespaceName", "Age"],
    ),
    ("quotas.offloading.liqo.io", "Quota", "Namespaced", &["qt"], false, &["Enforcement", "Cordoned", "Age", "User"]),
    (
        "shadowendpointslices.offloading.liqo.io",
        "ShadowEndpointSlice",
        "Namespaced",
        &["shes", "sheps", "seps"],
        false,
        &[],
    ),
    ("shadowpods.offloading.liqo.io", "ShadowPod", "Namespaced", &["shp", "shpod"], true, &["Status", "Age"]),
    (
        "virtualnodes.offloading.liqo.io",
        "VirtualNode",
        "Namespaced",
        &["vn", "vnode", "virno", "vno"],
        true,
        &["ClusterID", "Create Node", "Age", "Node", "VirtualKubelet"],
    ),
    ("vkoptionstemplates.offloading.liqo.io", "VkOptionsTemplate", "Namespaced", &["vkot", "vkopt"], false, &["Age"]),
];

/// What the API server stores at most in one object is far above this; a page of `kubectl explain` is not.
const MAX_BYTES: usize = 200_000;

#[test]
fn names_scopes_columns_and_subresources() {
    let crds = crds::all();
    assert_eq!(crds.len(), EXPECTED.len());
    for (crd, (name, kind, scope, short_names, has_status, columns)) in crds.iter().zip(EXPECTED) {
        let [version] = crd.spec.versions.as_slice() else { panic!("{name} has more than one version") };
        let printed: Vec<_> = version.additional_printer_columns.iter().flatten().map(|column| &column.name).collect();
        assert_eq!(crd.metadata.name.as_deref(), Some(name));
        assert_eq!(crd.spec.names.kind, kind);
        assert_eq!(crd.spec.scope, scope, "{name}");
        assert_eq!(crd.spec.names.short_names.clone().unwrap_or_default(), short_names, "{name}");
        assert_eq!(crd.spec.names.categories.as_deref(), Some(&["liqo".to_owned()][..]), "{name}");
        assert_eq!(version.name, spillway_api::VERSION, "{name}");
        assert_eq!(version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()), has_status, "{name}");
        assert_eq!(printed, columns, "{name}");
    }
}

#[test]
fn every_schema_is_plain_and_documented() {
    for crd in crds::all() {
        let name = crds::file_name(&crd);
        let json = serde_json::to_value(&crd).unwrap();
        assert!(json.to_string().len() < MAX_BYTES, "{name} is too large");
        let root = json["spec"]["versions"][0]["schema"]["openAPIV3Schema"].as_object().unwrap();
        walk(&name, root);
    }
}

fn walk(path: &str, schema: &Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    assert!(!format.starts_with("uint"), "{path} has a format that the API server does not know: {format}");
    assert!(!schema.contains_key("nullable"), "{path} allows null");
    assert!(
        schema.contains_key("type") || schema.contains_key("x-kubernetes-int-or-string"),
        "{path} has no type: the schema is not structural"
    );
    for key in ["anyOf", "oneOf", "allOf", "not"] {
        assert!(!schema.contains_key(key), "{path} has {key}");
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(nested)) = schema.get(key) {
            walk(&format!("{path}[{key}]"), nested);
        }
    }
    for (property, nested) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("{path}.{property}");
        let nested = nested.as_object().unwrap();
        assert!(nested.contains_key("description"), "{path} has no description");
        walk(&path, nested);
    }
}
