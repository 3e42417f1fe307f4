//! The custom resource definitions, as they are installed.

use kube::CustomResourceExt;
use serde_json::json;

use crate::{
    authentication::{Identity, Renew, ResourceSlice, Tenant},
    core::ForeignCluster,
    k8s::{CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool},
    networking::{Configuration, GatewayClient, GatewayServer},
    offloading::{
        NamespaceMap, NamespaceOffloading, Quota, ShadowEndpointSlice, ShadowPod, VirtualNode, VkOptionsTemplate,
    },
};

/// Whether an object may leave its spec out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spec {
    Required,
    /// The API server puts an empty one in its place, so that what is read always has a spec.
    Optional,
}

/// Every definition of this crate, sorted by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        finish::<NamespaceOffloading>(Spec::Required),
        finish::<NamespaceMap>(Spec::Optional),
        finish::<ShadowPod>(Spec::Optional),
        finish::<ShadowEndpointSlice>(Spec::Optional),
        finish::<VirtualNode>(Spec::Optional),
        finish::<VkOptionsTemplate>(Spec::Required),
        finish::<Quota>(Spec::Required),
        finish::<ResourceSlice>(Spec::Optional),
        finish::<Tenant>(Spec::Optional),
        finish::<Identity>(Spec::Optional),
        finish::<Renew>(Spec::Optional),
        finish::<ForeignCluster>(Spec::Required),
        finish::<Configuration>(Spec::Optional),
        finish::<GatewayServer>(Spec::Optional),
        finish::<GatewayClient>(Spec::Optional),
    ];
    all.sort_by_key(file_name);
    all
}

/// The name of the file that holds a definition: `<group>_<plural>.yaml`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

fn finish<K: CustomResourceExt>(spec: Spec) -> CustomResourceDefinition {
    let mut crd = K::crd();
    let schemas =
        crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for root in schemas {
        tidy(root);
        if spec == Spec::Optional {
            root.required = None;
            if let Some(spec) = root.properties.as_mut().and_then(|properties| properties.get_mut("spec")) {
                spec.default = Some(JSON(json!({})));
            }
        }
    }
    crd
}

/// Takes null out of what is allowed, and line breaks of the source code out of the descriptions. A null where a value
/// is expected is then refused, or replaced by the default, exactly as it is by the definitions that existing clients
/// were written against.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.title = None;
    schema.nullable = None;
    if let Some(allowed) = &mut schema.enum_ {
        allowed.retain(|JSON(value)| !value.is_null());
    }
    if let Some(description) = &mut schema.description {
        *description = join_lines(description);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        tidy(property);
    }
}

/// Joins the lines of each paragraph; a line that begins with anything but a word (a list, an indent) stays its own.
fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for (index, line) in text.lines().enumerate() {
        let goes_on = line.starts_with(|c: char| c.is_alphanumeric() || c == '`') && !joined.ends_with('\n');
        if index > 0 {
            joined.push(if goes_on { ' ' } else { '\n' });
        }
        joined.push_str(line);
    }
    joined
}
