//! What is honoured of a VirtualNode's `spec.template`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, ResourceRequirements};
use serde::Deserialize;
use spillway_api::offloading::DeploymentTemplate;

use super::ForgeError;

#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub deployment: Meta,
    pub pods: Meta,
    pub image: Option<String>,
    pub resources: Option<ResourceRequirements>,
    pub node_selector: Option<BTreeMap<String, String>>,
    pub affinity: Option<Affinity>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Meta {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DeploymentSpec {
    template: PodTemplate,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodTemplate {
    metadata: Option<Meta>,
    spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    containers: Vec<Container>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    image: Option<String>,
    resources: Option<ResourceRequirements>,
}

pub fn overrides(template: Option<&DeploymentTemplate>) -> Result<Overrides, ForgeError> {
    let Some(template) = template else {
        return Ok(Overrides::default());
    };
    let bad = |error: serde_json::Error| ForgeError::BadTemplate(error.to_string());
    let deployment = serde_json::from_value(template.metadata.clone().into()).map_err(bad)?;
    let spec: DeploymentSpec = serde_json::from_value(template.spec.clone().into()).map_err(bad)?;
    // Liqo's template has the virtual-kubelet as its only container.
    let pod = spec.template.spec;
    let container = pod.containers.into_iter().next().unwrap_or_default();
    Ok(Overrides {
        deployment,
        pods: spec.template.metadata.unwrap_or_default(),
        image: container.image.filter(|image| !image.is_empty()),
        resources: container.resources.filter(|resources| *resources != ResourceRequirements::default()),
        node_selector: pod.node_selector.filter(|selector| !selector.is_empty()),
        affinity: pod.affinity,
    })
}
