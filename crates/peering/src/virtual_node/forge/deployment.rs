//! The Deployment of a virtual-kubelet.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, KeyToPath, PodSpec, PodTemplateSpec, ResourceRequirements, SecretVolumeSource,
    Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use spillway_api::well_known::{annotation, name};

use super::affinity::on_real_nodes;
use super::parts::{
    METRICS_PORT_NAME, container_security, field, layered, pairs, pod_security, probe, pull_policy, pull_secrets,
    scrape, some,
};
use super::template::{Overrides, overrides};
use super::{ForgeError, Inputs, cluster_id, effective_patch, labels, sha256};

const REMOTE_VOLUME: &str = "remote-kubeconfig";
const REMOTE_DIRECTORY: &str = "/etc/spillway/remote";
const DEFAULT_METRICS_PORT: u16 = 8080;
/// The kubeconfig is for that user's group to read.
const GROUP_READABLE: i32 = 0o440;

pub fn forge(inputs: &Inputs<'_>, mut metadata: ObjectMeta) -> Result<Deployment, ForgeError> {
    let (virtual_node, options) = (inputs.virtual_node, inputs.options);
    let overrides = overrides(virtual_node.spec.template.as_ref())?;
    let ours = labels(&virtual_node.name_any(), cluster_id(virtual_node)?);
    let port = metrics_port(options.metrics_address.as_deref())?;
    let identity = metadata.annotations.take().unwrap_or_default();

    let mut pod_annotations = identity.clone();
    pod_annotations.insert(annotation::OFFLOADING_PATCH_HASH.to_owned(), patch_hash(inputs)?);
    if options.metrics_enabled {
        pod_annotations.extend(scrape(port));
    }
    let pods = ObjectMeta {
        labels: Some(layered(&[&options.extra_labels, &overrides.pods.labels, &ours])),
        annotations: Some(layered(&[&options.extra_annotations, &overrides.pods.annotations, &pod_annotations])),
        ..ObjectMeta::default()
    };
    metadata.labels = Some(layered(&[&options.extra_labels, &overrides.deployment.labels, &ours]));
    metadata.annotations = Some(layered(&[&options.extra_annotations, &overrides.deployment.annotations, &identity]));
    let service_account = metadata.name.clone();
    Ok(Deployment {
        metadata,
        spec: DeploymentSpec {
            replicas: Some(options.replicas.unwrap_or(1)),
            selector: LabelSelector { match_labels: Some(ours), ..LabelSelector::default() },
            // Never two at once is seen to by the virtual-kubelet's own lease; this only saves a pod that would wait.
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(0)),
                    max_unavailable: Some(IntOrString::Int(1)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(pods),
                spec: Some(PodSpec {
                    service_account_name: service_account,
                    containers: vec![virtual_kubelet(inputs, &overrides, port)?],
                    volumes: Some(vec![remote_kubeconfig(inputs)?]),
                    security_context: Some(pod_security()),
                    image_pull_secrets: some(options.image_pull_secrets.clone()).map(pull_secrets),
                    tolerations: some(options.tolerations.clone()),
                    node_selector: overrides.node_selector.clone(),
                    affinity: Some(on_real_nodes(overrides.affinity.clone())),
                    ..PodSpec::default()
                }),
            },
            ..DeploymentSpec::default()
        },
        ..Deployment::default()
    })
}

fn virtual_kubelet(inputs: &Inputs<'_>, overrides: &Overrides, port: u16) -> Result<Container, ForgeError> {
    let (virtual_node, options) = (inputs.virtual_node, inputs.options);
    let image = overrides.image.clone().unwrap_or_else(|| options.container_image.clone());
    if image.is_empty() {
        return Err(ForgeError::BadOptions("spec.containerImage is empty".to_owned()));
    }
    let mut args = vec![
        format!("--nodename={}", virtual_node.name_any()),
        format!("--tenant-namespace={}", virtual_node.namespace().unwrap_or_default()),
        format!("--home-cluster-id={}", inputs.home),
        format!("--foreign-cluster-id={}", cluster_id(virtual_node)?),
        "--node-ip=$(POD_IP)".to_owned(),
        format!("--create-node={}", inputs.create_node),
        format!("--foreign-kubeconfig={REMOTE_DIRECTORY}/{}", name::KUBECONFIG_KEY),
        format!("--metrics-address=0.0.0.0:{port}"),
    ];
    for (flag, map) in
        [("node-extra-labels", &options.node_extra_labels), ("node-extra-annotations", &options.node_extra_annotations)]
    {
        if !map.is_empty() {
            args.push(format!("--{flag}={}", pairs(map)));
        }
    }
    for (flag, keys) in [
        ("labels-not-reflected", &options.labels_not_reflected),
        ("annotations-not-reflected", &options.annotations_not_reflected),
    ] {
        if !keys.is_empty() {
            args.push(format!("--{flag}={}", keys.join(",")));
        }
    }
    args.extend(options.extra_args.iter().cloned());
    Ok(Container {
        name: "virtual-kubelet".to_owned(),
        image: Some(image),
        image_pull_policy: pull_policy(options.pull_policy),
        command: Some(vec!["/usr/bin/virtual-kubelet".to_owned()]),
        args: Some(args),
        env: Some(vec![
            field("POD_IP", "status.podIP"),
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            field("POD_UID", "metadata.uid"),
            EnvVar { name: "VIRTUALNODE_NAME".to_owned(), value: Some(virtual_node.name_any()), value_from: None },
        ]),
        ports: Some(vec![ContainerPort {
            name: Some(METRICS_PORT_NAME.to_owned()),
            container_port: i32::from(port),
            ..ContainerPort::default()
        }]),
        resources: match &overrides.resources {
            Some(resources) => Some(resources.clone()),
            None => resources(inputs)?,
        },
        liveness_probe: Some(probe("/livez")),
        readiness_probe: Some(probe("/readyz")),
        security_context: Some(container_security()),
        // Its last words end up in the VirtualNode's condition.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(vec![VolumeMount {
            name: REMOTE_VOLUME.to_owned(),
            mount_path: REMOTE_DIRECTORY.to_owned(),
            read_only: Some(true),
            ..VolumeMount::default()
        }]),
        ..Container::default()
    })
}

/// Mounted, not read by right: narrower than any permission on Secrets.
fn remote_kubeconfig(inputs: &Inputs<'_>) -> Result<Volume, ForgeError> {
    let secret = inputs.virtual_node.spec.kubeconfig_secret_ref.as_ref();
    let secret = secret
        .map(|reference| reference.name.clone())
        .filter(|name| !name.is_empty())
        .ok_or(ForgeError::NoKubeconfigSecret)?;
    Ok(Volume {
        name: REMOTE_VOLUME.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret),
            default_mode: Some(GROUP_READABLE),
            items: Some(vec![KeyToPath {
                key: name::KUBECONFIG_KEY.to_owned(),
                path: name::KUBECONFIG_KEY.to_owned(),
                ..KeyToPath::default()
            }]),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    })
}

/// A change of what goes to the remote cluster starts the virtual-kubelet anew.
fn patch_hash(inputs: &Inputs<'_>) -> Result<String, ForgeError> {
    let patch = effective_patch(inputs.virtual_node, inputs.options);
    // A JSON value has its keys in order, so the text is canonical.
    let value = serde_json::to_value(patch).map_err(|error| ForgeError::BadOptions(error.to_string()))?;
    Ok(sha256(value.to_string()))
}

fn resources(inputs: &Inputs<'_>) -> Result<Option<ResourceRequirements>, ForgeError> {
    let Some(resources) = &inputs.options.resources else {
        return Ok(None);
    };
    let bad = |error: serde_json::Error| ForgeError::BadOptions(format!("spec.resources: {error}"));
    let value = serde_json::to_value(resources).map_err(bad)?;
    serde_json::from_value(value).map(Some).map_err(bad)
}

/// `:8080`, `0.0.0.0:8080` or a bare port; the probes are served there as well.
fn metrics_port(address: Option<&str>) -> Result<u16, ForgeError> {
    match address.filter(|address| !address.is_empty()) {
        None => Ok(DEFAULT_METRICS_PORT),
        Some(address) => address
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok())
            .filter(|port| *port > 0)
            .ok_or_else(|| ForgeError::BadOptions(format!("spec.metricsAddress '{address}' has no port"))),
    }
}
