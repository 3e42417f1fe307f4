//! Local pod → ShadowPod. Pure: no client, no clock.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::{Value, json};
use spillway_api::offloading::{OffloadingPatch, ShadowPod, ShadowPodSpec};
use spillway_api::well_known::{annotation, finalizer, label, taint};
use spillway_api::{RawObject, RawPod};

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

/// Fields of a pod spec that mean something only where the pod was scheduled first.
const LEFT_AT_HOME: &[&str] = &[
    "nodeName",
    "nodeSelector",
    "affinity",
    "topologySpreadConstraints",
    "schedulerName",
    "schedulingGates",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "overhead",
    "readinessGates",
    "resourceClaims",
    "ephemeralContainers",
    "serviceAccount",
    "serviceAccountName",
    "hostNetwork",
    "hostIPC",
    "hostPID",
];

/// The ShadowPod of a local pod; its namespace is set by whoever writes it.
pub fn shadow_pod(pod: &RawPod, context: &Context) -> ShadowPod {
    let mut labels = kept(pod.labels(), &context.patch.labels_not_reflected);
    labels.remove(label::SHADOW_POD);
    labels.extend(context.ownership().map(|(key, value)| (key.to_owned(), value.to_owned())));
    let mut annotations = kept(pod.annotations(), &context.patch.annotations_not_reflected);
    annotations.insert(annotation::ORIGIN_UID.to_owned(), pod.uid().unwrap_or_default());
    ShadowPod {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            // Set in the create call, so that shadow-pod need not write before it makes the pod.
            finalizers: Some(vec![finalizer::SHADOW_POD.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: ShadowPodSpec { pod: spec(pod, context) },
        status: None,
    }
}

fn kept(map: &BTreeMap<String, String>, not_reflected: &[String]) -> BTreeMap<String, String> {
    map.iter()
        .filter(|(key, _)| !not_reflected.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn spec(pod: &RawPod, context: &Context) -> RawObject {
    let mut spec = pod.spec.clone();
    for field in LEFT_AT_HOME {
        spec.remove(*field);
    }
    spec.insert("automountServiceAccountToken".to_owned(), Value::Bool(false));
    carry_tolerations(&mut spec, context);
    carry_runtime_class(&mut spec, pod, context);
    if let Some(Value::Array(volumes)) = spec.get_mut("volumes") {
        volumes.iter_mut().for_each(without_local_tokens);
    }
    if !context.patch.node_selector.is_empty() {
        spec.insert("nodeSelector".to_owned(), json!(context.patch.node_selector));
    }
    if let Some(affinity) = &context.patch.affinity {
        spec.insert("affinity".to_owned(), json!(affinity));
    }
    spec
}

/// Without the one for virtual nodes, or the pod might be offloaded again by the provider.
fn carry_tolerations(spec: &mut RawObject, context: &Context) {
    let own = match spec.remove("tolerations") {
        Some(Value::Array(own)) => own,
        _ => Vec::new(),
    };
    let own = own.into_iter().filter(|toleration| toleration.get("key") != Some(&json!(taint::NOT_ALLOWED)));
    let all: Vec<_> = own.chain(context.patch.tolerations.iter().map(|toleration| json!(toleration))).collect();
    if !all.is_empty() {
        spec.insert("tolerations".to_owned(), Value::Array(all));
    }
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
mod tests {
    use super::*;
    use rstest::rstest;

    fn context() -> Context {
        Context {
            node_name: "away".into(),
            home_cluster_id: "rome".into(),
            foreign_cluster_id: "milan".into(),
            patch: OffloadingPatch::default(),
        }
    }

    fn pod(spec: Value) -> RawPod {
        let object = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "l1"}, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    fn forged(spec: Value) -> Value {
        json!(shadow_pod(&pod(spec), &context()).spec.pod)
    }

    #[test]
    fn what_belongs_to_the_first_scheduling_stays_at_home_and_the_rest_goes() {
        let spec = json!({
            "nodeName": "away", "nodeSelector": {"a": "b"}, "affinity": {"nodeAffinity": {}}, "schedulerName": "s",
            "priorityClassName": "p", "priority": 5, "preemptionPolicy": "Never", "hostNetwork": true, "hostPID": true,
            "hostIPC": true, "serviceAccountName": "sa", "serviceAccount": "sa", "readinessGates": [{"conditionType": "x"}],
            "topologySpreadConstraints": [{}], "automountServiceAccountToken": true,
            "containers": [{"name": "c", "future": 1}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
            "fieldOfTheFuture": {"deep": [1, 2]},
        });
        assert_eq!(
            forged(spec),
            json!({
                "containers": [{"name": "c", "future": 1}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 3,
                "fieldOfTheFuture": {"deep": [1, 2]}, "automountServiceAccountToken": false,
            })
        );
    }

    #[test]
    fn tolerations_lose_the_virtual_nodes_and_gain_the_patchs() {
        let mut context = context();
        context.patch.tolerations = vec![serde_json::from_value(json!({"key": "t", "operator": "Exists"})).unwrap()];
        let spec =
            json!({"tolerations": [{"key": "virtual-node.liqo.io/not-allowed", "operator": "Exists"}, {"key": "gpu"}]});
        let forged = shadow_pod(&pod(spec), &context).spec.pod;
        assert_eq!(forged["tolerations"], json!([{"key": "gpu"}, {"key": "t", "operator": "Exists"}]));
    }

    #[rstest]
    #[case(Some("a"), Some("b"), Some("c"), Some("a"))]
    #[case(None, Some("b"), Some("c"), Some("b"))]
    #[case(None, Some("liqo"), Some("c"), Some("c"))]
    #[case(None, None, Some("liqo"), None)]
    #[case(None, Some("liqo"), None, None)]
    fn runtime_class_by_annotation_spec_and_patch(
        #[case] annotated: Option<&str>,
        #[case] own: Option<&str>,
        #[case] patched: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let mut context = context();
        context.patch.runtime_class_name = patched.map(str::to_owned);
        let mut pod = pod(own.map_or(json!({}), |own| json!({"runtimeClassName": own})));
        if let Some(class) = annotated {
            pod.annotations_mut().insert(annotation::REMOTE_RUNTIME_CLASS_NAME.to_owned(), class.to_owned());
        }
        let forged = shadow_pod(&pod, &context).spec.pod;
        assert_eq!(forged.get("runtimeClassName").and_then(Value::as_str), expected);
    }

    #[test]
    fn a_projected_volume_keeps_everything_but_the_token() {
        let sources = json!([
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt"}},
        ]);
        let spec = json!({"volumes": [{"name": "kube-api-access-x", "projected": {"sources": sources}}, {"name": "e", "emptyDir": {}}]});
        let kept = json!([
            {"name": "kube-api-access-x", "projected": {"sources": [{"configMap": {"name": "kube-root-ca.crt"}}]}},
            {"name": "e", "emptyDir": {}},
        ]);
        assert_eq!(forged(spec)["volumes"], kept);
    }

    #[test]
    fn metadata_is_carried_filtered_and_marked() {
        let mut context = context();
        context.patch.labels_not_reflected = vec!["secret".into()];
        context.patch.annotations_not_reflected = vec!["internal".into()];
        let mut pod = pod(json!({}));
        pod.labels_mut()
            .extend([("app", "web"), ("secret", "x"), (label::SHADOW_POD, "true")].map(|(k, v)| (k.into(), v.into())));
        pod.annotations_mut().extend([("note", "n"), ("internal", "x")].map(|(k, v)| (k.into(), v.into())));
        let metadata = json!(shadow_pod(&pod, &context).metadata);
        assert_eq!(
            metadata,
            json!({
                "name": "web",
                "labels": {"app": "web", "offloading.liqo.io/origin": "rome", "offloading.liqo.io/destination": "milan",
                           "offloading.liqo.io/nodename": "away"},
                "annotations": {"note": "n", "offloading.spillway.dev/origin-uid": "l1"},
                "finalizers": ["offloading.spillway.dev/pod"],
            })
        );
    }
}
