//! The small parts that a pod is put together from.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, EnvVar, EnvVarSource, HTTPGetAction, LocalObjectReference, ObjectFieldSelector, PodSecurityContext,
    Probe, SeccompProfile, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use spillway_api::offloading::PullPolicy;

pub const METRICS_PORT_NAME: &str = "metrics";
/// The image's user without privileges.
const USER: i64 = 65532;

pub type Map = BTreeMap<String, String>;

pub fn scrape(port: u16) -> Map {
    [
        ("prometheus.io/scrape", "true".to_owned()),
        ("prometheus.io/port", port.to_string()),
        ("prometheus.io/path", "/metrics".to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

pub fn pod_security() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

pub fn container_security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}

pub fn probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(METRICS_PORT_NAME.to_owned()),
            ..HTTPGetAction::default()
        }),
        period_seconds: Some(5),
        ..Probe::default()
    }
}

pub fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector { field_path: path.to_owned(), api_version: None }),
            ..EnvVarSource::default()
        }),
    }
}

pub fn pull_policy(policy: Option<PullPolicy>) -> Option<String> {
    let policy = match policy? {
        PullPolicy::Always => "Always",
        PullPolicy::IfNotPresent => "IfNotPresent",
        PullPolicy::Never => "Never",
        PullPolicy::Unset => return None,
    };
    Some(policy.to_owned())
}

/// A reference without a name is refused by the API server, and there is none to say.
pub fn pull_secrets(secrets: Vec<LocalObjectReference>) -> Vec<LocalObjectReference> {
    secrets.into_iter().filter(|secret| !secret.name.is_empty()).collect()
}

pub fn pairs(map: &Map) -> String {
    let pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// Later layers win.
pub fn layered(layers: &[&Map]) -> Map {
    layers.iter().flat_map(|layer| layer.iter()).map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}
