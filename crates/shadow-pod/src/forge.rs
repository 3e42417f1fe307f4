//! ShadowPod → Pod.

use kube::ResourceExt;
use kube::api::ObjectMeta;
use spillway_api::k8s::OwnerReference;
use spillway_api::offloading::ShadowPod;
use spillway_api::raw_pod::restart_policy;
use spillway_api::well_known::{annotation, finalizer, label};
use spillway_api::{RawPod, live};

/// A pod can't be created with these, they are only ever added to one.
const EPHEMERAL_CONTAINERS: &str = "ephemeralContainers";

/// Notes on a ShadowPod that are not for its pod.
const NOT_FOR_THE_POD: &[&str] = &[annotation::DELETION_GRACE_SECONDS, annotation::LIVE_DIGEST];

/// The pod to create for a ShadowPod. What can only be added to a living pod is missing, and its live digest says so.
pub fn pod(shadow: &ShadowPod) -> RawPod {
    let mut spec = shadow.spec.pod.clone();
    spec.remove(EPHEMERAL_CONTAINERS);
    let live = live::digest(shadow.labels(), shadow.annotations(), &spec);
    RawPod { spec, ..marked(shadow, live) }
}

/// The pod that a ShadowPod asks for, as it should be once everything was carried over.
pub fn wanted(shadow: &ShadowPod) -> RawPod {
    RawPod { spec: shadow.spec.pod.clone(), ..marked(shadow, live_digest(shadow)) }
}

/// The digest that the pod carries once everything was carried over.
pub fn live_digest(shadow: &ShadowPod) -> String {
    live::digest(shadow.labels(), shadow.annotations(), &shadow.spec.pod)
}

/// A pod without a spec. (The spec passes through as it is, fields that this build does not know included.)
fn marked(shadow: &ShadowPod, live: String) -> RawPod {
    let mut labels = shadow.labels().clone();
    labels.insert(label::MANAGED_BY.to_owned(), label::MANAGED_BY_SHADOW_POD.to_owned());
    let mut annotations = shadow.annotations().clone();
    annotations.retain(|key, _| !NOT_FOR_THE_POD.contains(&key.as_str()));
    annotations.insert(annotation::LIVE_DIGEST.to_owned(), live);
    RawPod {
        metadata: ObjectMeta {
            name: shadow.metadata.name.clone(),
            namespace: shadow.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner(&shadow.name_any(), &shadow.uid().unwrap_or_default())]),
            // Set at birth: a pod must never be able to vanish before its outcome is recorded.
            finalizers: can_end(shadow).then(|| vec![finalizer::OUTCOME.to_owned()]),
            ..ObjectMeta::default()
        },
        ..RawPod::default()
    }
}

/// Whether its pod may end for good. Of one that is made again whatever ends it nothing is to be learnt before it goes.
pub fn can_end(shadow: &ShadowPod) -> bool {
    let spec = &shadow.spec.pod;
    restart_policy(spec) != "Always"
        || spec.get("activeDeadlineSeconds").is_some_and(|deadline| !deadline.is_null())
        || fails_on_disruption(shadow)
}

/// Whether a pod that was disrupted after it had started is to end as Failed.
pub fn fails_on_disruption(shadow: &ShadowPod) -> bool {
    shadow.annotations().get(annotation::ON_DISRUPTION).map(String::as_str) == Some(annotation::ON_DISRUPTION_FAIL)
}

/// The reference by which a pod belongs to a ShadowPod.
pub fn owner(name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: <ShadowPod as kube::Resource>::api_version(&()).into_owned(),
        kind: <ShadowPod as kube::Resource>::kind(&()).into_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn shadow(spec: Value) -> ShadowPod {
        serde_json::from_value(json!({
            "apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod",
            "metadata": {"name": "web", "namespace": "shop-rome", "uid": "u1",
                         "labels": {"offloading.liqo.io/origin": "rome", "app": "web"},
                         "annotations": {"offloading.spillway.dev/origin-uid": "l1",
                                         "offloading.spillway.dev/live-digest": "of the consumer",
                                         "offloading.spillway.dev/deletion-grace-seconds": "3", "note": "kept"}},
            "spec": {"pod": spec},
        }))
        .unwrap()
    }

    #[test]
    fn a_field_that_this_build_does_not_know_survives() {
        let shadow = shadow(json!({"containers": [{"name": "c", "image": "i", "fieldOfTheFuture": {"x": 1}}]}));
        let pod = serde_json::to_value(pod(&shadow)).unwrap();
        assert_eq!(
            pod,
            json!({
                "metadata": {
                    "name": "web", "namespace": "shop-rome",
                    "labels": {"offloading.liqo.io/origin": "rome", "app": "web", "liqo.io/managed-by": "shadowpod"},
                    "annotations": {"offloading.spillway.dev/origin-uid": "l1", "note": "kept",
                                    "offloading.spillway.dev/live-digest": live_digest(&shadow)},
                    "ownerReferences": [{"apiVersion": "offloading.liqo.io/v1beta1", "kind": "ShadowPod", "name": "web",
                                         "uid": "u1", "controller": true}],
                },
                "spec": {"containers": [{"name": "c", "image": "i", "fieldOfTheFuture": {"x": 1}}]},
            })
        );
    }

    #[rstest]
    #[case::made_again_whatever_ends_it(json!({"containers": []}), json!({}), false)]
    #[case::the_same_spelt_out(json!({"restartPolicy": "Always", "activeDeadlineSeconds": null}), json!({}), false)]
    #[case::runs_to_completion(json!({"restartPolicy": "Never"}), json!({}), true)]
    #[case::may_fail_for_good(json!({"restartPolicy": "OnFailure"}), json!({}), true)]
    #[case::has_a_deadline(json!({"activeDeadlineSeconds": 5}), json!({}), true)]
    #[case::a_container_has_rules_of_its_own(json!({"containers": [{"restartPolicy": "Never"}]}), json!({}), true)]
    #[case::a_sidecar_has_none_that_matter(json!({"initContainers": [{"restartPolicy": "Always"}]}), json!({}), false)]
    #[case::must_not_run_twice(json!({}), json!({"offloading.spillway.dev/on-disruption": "Fail"}), true)]
    fn a_pod_that_can_end_is_held_until_its_outcome_is_known(
        #[case] spec: Value,
        #[case] annotations: Value,
        #[case] held: bool,
    ) {
        let mut shadow = shadow(spec);
        shadow.annotations_mut().extend(serde_json::from_value::<BTreeMap<_, _>>(annotations).unwrap());
        for pod in [pod(&shadow), wanted(&shadow)] {
            assert_eq!(pod.finalizers(), if held { &[finalizer::OUTCOME][..] } else { &[] });
        }
    }

    #[test]
    fn ephemeral_containers_come_later_and_the_digest_tells() {
        let debugged = shadow(json!({"containers": [], "ephemeralContainers": [{"name": "debug"}]}));
        let created = pod(&debugged);
        assert!(!created.spec.contains_key(EPHEMERAL_CONTAINERS));
        assert_ne!(created.annotations()[annotation::LIVE_DIGEST], live_digest(&debugged));
        assert_eq!(created.annotations()[annotation::LIVE_DIGEST], live_digest(&shadow(json!({"containers": []}))));
        let wanted = wanted(&debugged);
        assert!(wanted.spec.contains_key(EPHEMERAL_CONTAINERS));
        assert_eq!(wanted.annotations()[annotation::LIVE_DIGEST], live_digest(&debugged));
    }
}
