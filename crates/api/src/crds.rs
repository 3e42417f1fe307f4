//! The custom resource definitions, as they are installed.

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use crate::{
    authentication::{Identity, Renew, ResourceSlice, Tenant},
    core::ForeignCluster,
    k8s::{CustomResourceDefinition, JSONSchemaProps},
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
pub fn all() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    let mut all = vec![
        finish::<NamespaceOffloading>(Spec::Required)?,
        finish::<NamespaceMap>(Spec::Optional)?,
        finish::<ShadowPod>(Spec::Optional)?,
        finish::<ShadowEndpointSlice>(Spec::Optional)?,
        finish::<VirtualNode>(Spec::Optional)?,
        finish::<VkOptionsTemplate>(Spec::Required)?,
        finish::<Quota>(Spec::Required)?,
        finish::<ResourceSlice>(Spec::Optional)?,
        finish::<Tenant>(Spec::Optional)?,
        finish::<Identity>(Spec::Optional)?,
        finish::<Renew>(Spec::Optional)?,
        finish::<ForeignCluster>(Spec::Required)?,
        finish::<Configuration>(Spec::Optional)?,
        finish::<GatewayServer>(Spec::Optional)?,
        finish::<GatewayClient>(Spec::Optional)?,
    ];
    all.sort_by(|left, right| file_name(left).cmp(&file_name(right)));
    Ok(all)
}

/// The name of the file that holds a definition: `<group>_<plural>.yaml`.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

fn finish<K: CustomResourceExt>(spec: Spec) -> Result<CustomResourceDefinition, serde_json::Error> {
    let mut crd = K::crd();
    for version in &mut crd.spec.versions {
        let Some(schema) = version.schema.as_mut().and_then(|validation| validation.open_api_v3_schema.as_mut()) else {
            continue;
        };
        let mut value = serde_json::to_value(&*schema)?;
        if let Some(root) = value.as_object_mut() {
            tidy(root);
            if spec == Spec::Optional {
                make_spec_optional(root);
            }
        }
        *schema = serde_json::from_value::<JSONSchemaProps>(value)?;
    }
    Ok(crd)
}

/// Takes `nullable` away. A null where a value is expected is then refused, or replaced by the default, exactly as it
/// is by the definitions that existing clients were written against.
fn tidy(schema: &mut Map<String, Value>) {
    schema.remove("nullable");
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(nested)) = schema.get_mut(key) {
            tidy(nested);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for nested in properties.values_mut().filter_map(Value::as_object_mut) {
            tidy(nested);
        }
    }
}

fn make_spec_optional(root: &mut Map<String, Value>) {
    root.remove("required");
    if let Some(Value::Object(spec)) = root.get_mut("properties").and_then(|properties| properties.get_mut("spec")) {
        spec.insert("default".to_owned(), json!({}));
    }
}
