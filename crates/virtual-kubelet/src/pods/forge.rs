//! Local pod → ShadowPod. Pure: no client, no clock.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use spillway_api::offloading::{OffloadingPatch, ShadowPod, ShadowPodSpec};
use spillway_api::well_known::{annotation, finalizer, label, taint};
use spillway_api::{RawObject, RawPod, live};

use super::fields::{self, Treatment};

mod affinity;
mod containers;
pub mod update;

/// Who the pods belong to and what is changed on their way; fixed for the life of the process.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub node_name: String,
    pub home_cluster_id: String,
    pub foreign_cluster_id: String,
    pub patch: OffloadingPatch,
}

impl Context {
    /// The labels that mark an object on the other side as this virtual node's.
    pub fn ownership(&self) -> [(&'static str, &str); 3] {
        [
            (label::ORIGIN, &self.home_cluster_id),
            (label::DESTINATION, &self.foreign_cluster_id),
            (label::NODE_NAME, &self.node_name),
        ]
    }

    /// The same as a label selector.
    pub fn selector(&self) -> String {
        self.ownership().map(|(key, value)| format!("{key}={value}")).join(",")
    }
}

/// Why a pod cannot run on a virtual node at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

/// What `kubectl apply` notes for itself: useless on the other side, and as large as the pod.
const NOTES_OF_KUBECTL: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The ShadowPod of a local pod; its namespace is set by whoever writes it.
pub fn shadow_pod(pod: &RawPod, context: &Context) -> Result<ShadowPod, Refusal> {
    let (labels, mut annotations) = (labels(pod, context), annotations(pod, context));
    let spec = spec(pod, context)?;
    annotations.insert(annotation::LIVE_DIGEST.to_owned(), live::digest(&labels, &annotations, &spec));
    annotations.insert(annotation::ORIGIN_UID.to_owned(), pod.uid().unwrap_or_default());
    Ok(ShadowPod {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            // Set in the create call, so that shadow-pod need not write before it makes the pod.
            finalizers: Some(vec![finalizer::SHADOW_POD.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: ShadowPodSpec { pod: spec },
        status: None,
    })
}

/// The digest that the ShadowPod of this pod should bear, without forging the whole.
pub fn live_digest(pod: &RawPod, context: &Context) -> String {
    let mut part = live::part(&pod.spec);
    carry_tolerations(&mut part, pod, context);
    live::digest(&labels(pod, context), &annotations(pod, context), &part)
}

fn labels(pod: &RawPod, context: &Context) -> BTreeMap<String, String> {
    let mut labels = kept(pod.labels(), &context.patch.labels_not_reflected);
    labels.remove(label::SHADOW_POD);
    labels.extend(context.ownership().map(|(key, value)| (key.to_owned(), value.to_owned())));
    labels
}

/// Without the notes of the carrying itself, which a user's pod might claim to have.
fn annotations(pod: &RawPod, context: &Context) -> BTreeMap<String, String> {
    let mut annotations = kept(pod.annotations(), &context.patch.annotations_not_reflected);
    for note in [NOTES_OF_KUBECTL, annotation::DELETION_GRACE_SECONDS, annotation::LIVE_DIGEST, annotation::ORIGIN_UID]
    {
        annotations.remove(note);
    }
    annotations
}

fn kept(map: &BTreeMap<String, String>, not_reflected: &[String]) -> BTreeMap<String, String> {
    map.iter()
        .filter(|(key, _)| !not_reflected.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn spec(pod: &RawPod, context: &Context) -> Result<RawObject, Refusal> {
    if let Some(why) = fields::refusal(&pod.spec) {
        return Err(Refusal(why));
    }
    let mut spec = pod.spec.clone();
    spec.retain(|field, _| !matches!(fields::treatment(field), Treatment::Dropped(_)));
    spec.insert("automountServiceAccountToken".to_owned(), Value::Bool(false));
    carry_tolerations(&mut spec, pod, context);
    carry_runtime_class(&mut spec, pod, context);
    affinity::carry(&mut spec, pod, context)?;
    if let Some(Value::Array(volumes)) = spec.get_mut("volumes") {
        volumes.iter_mut().for_each(without_local_tokens);
    }
    containers::carry(&mut spec, pod, context);
    spec.remove("nodeSelector");
    if !context.patch.node_selector.is_empty() {
        spec.insert("nodeSelector".to_owned(), json!(context.patch.node_selector));
    }
    Ok(spec)
}

/// Without those that would let the provider offload the pod again: for virtual nodes, and for everything.
fn carry_tolerations(spec: &mut RawObject, pod: &RawPod, context: &Context) {
    let own = pod.spec.get("tolerations").and_then(Value::as_array).into_iter().flatten();
    let real = |toleration: &&Value| match toleration.get("key").and_then(Value::as_str) {
        Some(key) => !key.is_empty() && key != taint::NOT_ALLOWED,
        None => false,
    };
    let patched = context.patch.tolerations.iter().map(|toleration| json!(toleration));
    let all: Vec<_> = own.filter(real).cloned().chain(patched).collect();
    match all.is_empty() {
        true => spec.remove("tolerations"),
        false => spec.insert("tolerations".to_owned(), Value::Array(all)),
    };
}

/// The annotation, else the pod's own class, else the patch's; `liqo` only asks for a virtual node and means nothing there.
fn carry_runtime_class(spec: &mut RawObject, pod: &RawPod, context: &Context) {
    let own = spec.remove("runtimeClassName").and_then(|class| class.as_str().map(str::to_owned));
    let real = |class: &String| class != "liqo";
    let class = pod.annotations().get(annotation::REMOTE_RUNTIME_CLASS_NAME).cloned();
    let class = class.or_else(|| own.filter(real)).or_else(|| context.patch.runtime_class_name.clone().filter(real));
    if let Some(class) = class {
        spec.insert("runtimeClassName".to_owned(), Value::String(class));
    }
}

/// A projected token would be issued by the provider for an account of its own: it is left out.
fn without_local_tokens(volume: &mut Value) {
    if let Some(Value::Array(sources)) = volume.pointer_mut("/projected/sources") {
        sources.retain(|source| source.get("serviceAccountToken").is_none());
    }
}

#[cfg(test)]
mod tests;
