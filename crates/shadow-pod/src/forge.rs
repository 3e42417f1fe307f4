//! ShadowPod → Pod.

use kube::ResourceExt;
use kube::api::ObjectMeta;
use spillway_api::RawPod;
use spillway_api::k8s::OwnerReference;
use spillway_api::offloading::ShadowPod;
use spillway_api::well_known::{annotation, finalizer, label};

/// The pod that a ShadowPod asks for. The spec passes through as it is, fields that this build does not know included.
pub fn pod(shadow: &ShadowPod) -> RawPod {
    let mut labels = shadow.labels().clone();
    labels.insert(label::MANAGED_BY.to_owned(), label::MANAGED_BY_SHADOW_POD.to_owned());
    let mut annotations = shadow.annotations().clone();
    annotations.remove(annotation::DELETION_GRACE_SECONDS);
    RawPod {
        metadata: ObjectMeta {
            name: shadow.metadata.name.clone(),
            namespace: shadow.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner(shadow)]),
            // Set at birth: a pod must never be able to vanish before its outcome is recorded.
            finalizers: Some(vec![finalizer::OUTCOME.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: shadow.spec.pod.clone(),
        ..RawPod::default()
    }
}

fn owner(shadow: &ShadowPod) -> OwnerReference {
    OwnerReference {
        api_version: <ShadowPod as kube::Resource>::api_version(&()).into_owned(),
        kind: <ShadowPod as kube::Resource>::kind(&()).into_owned(),
        name: shadow.name_any(),
        uid: shadow.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_field_that_this_build_does_not_know_survives() {
        let shadow: ShadowPod = serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {"name": "web", "namespace": "shop-rome", "uid": "u1",
                         "labels": {"offloading.liqo.io/origin": "rome", "app": "web"},
                         "annotations": {"offloading.spillway.dev/origin-uid": "l1",
                                         "offloading.spillway.dev/deletion-grace-seconds": "3", "note": "kept"}},
            "spec": {"pod": {"containers": [{"name": "c", "image": "i", "fieldOfTheFuture": {"x": 1}}]}},
        }))
        .unwrap();
        let pod = serde_json::to_value(pod(&shadow)).unwrap();
        assert_eq!(
            pod,
            json!({
                "metadata": {
                    "name": "web", "namespace": "shop-rome",
                    "labels": {"offloading.liqo.io/origin": "rome", "app": "web", "liqo.io/managed-by": "shadowpod"},
                    "annotations": {"offloading.spillway.dev/origin-uid": "l1", "note": "kept"},
                    "ownerReferences": [{"apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod", "name": "web",
                                         "uid": "u1", "controller": true}],
                    "finalizers": ["offloading.spillway.dev/outcome"],
                },
                "spec": {"containers": [{"name": "c", "image": "i", "fieldOfTheFuture": {"x": 1}}]},
            })
        );
    }
}
