//! The affinity that a remote pod gets: where it may run, and which of its like it should keep away from. The pod's own was
//! about the nodes of its own cluster.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::{Value, json};
use spillway_api::well_known::{annotation, label};
use spillway_api::{RawObject, RawPod};

use super::{Context, Refusal, kept};

/// Labels that tell the pods of one controller apart, so that no two would ever keep away from each other.
const OF_ONE_REVISION: &[&str] =
    &["controller-revision-hash", "pod-template-hash", "statefulset.kubernetes.io/pod-name"];

pub(super) fn carry(spec: &mut RawObject, pod: &RawPod, context: &Context) -> Result<(), Refusal> {
    let own = spec.remove("affinity");
    let mut affinity = RawObject::new();
    let nodes = context.patch.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    if let Some(nodes) = nodes {
        affinity.insert("nodeAffinity".to_owned(), json!(nodes));
    }
    if let Some(apart) = anti_affinity(own.as_ref(), pod, context)? {
        affinity.insert("podAntiAffinity".to_owned(), apart);
    }
    if !affinity.is_empty() {
        spec.insert("affinity".to_owned(), Value::Object(affinity));
    }
    Ok(())
}

fn anti_affinity(own: Option<&Value>, pod: &RawPod, context: &Context) -> Result<Option<Value>, Refusal> {
    let Some(preset) = pod.annotations().get(annotation::ANTI_AFFINITY_PRESET) else { return Ok(None) };
    let term = || {
        let labels = labels(pod, context);
        json!({"labelSelector": {"matchLabels": labels}, "topologyKey": label::HOSTNAME})
    };
    Ok(match preset.as_str() {
        "propagate" => own.and_then(|own| own.get("podAntiAffinity")).cloned(),
        "soft" => {
            Some(json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term()}]}))
        }
        "hard" => Some(json!({"requiredDuringSchedulingIgnoredDuringExecution": [term()]})),
        other => {
            return Err(Refusal(format!(
                "annotation {}: '{other}' is none of propagate, soft, hard",
                annotation::ANTI_AFFINITY_PRESET
            )));
        }
    })
}

/// The labels by which a pod knows its like: those that are named, else all that say something about the whole set.
fn labels(pod: &RawPod, context: &Context) -> BTreeMap<String, String> {
    let named = pod.annotations().get(annotation::ANTI_AFFINITY_LABELS);
    let named: Option<Vec<&str>> = named.map(|keys| keys.split(',').map(str::trim).collect());
    let mut labels = kept(pod.labels(), &context.patch.labels_not_reflected);
    labels.retain(|key, _| match &named {
        Some(named) => named.contains(&key.as_str()),
        None => key != label::SHADOW_POD && !OF_ONE_REVISION.contains(&key.as_str()),
    });
    labels
}

#[cfg(test)]
mod tests {
    use super::super::tests::{context, pod};
    use super::*;
    use rstest::rstest;

    const TERM: &str = r#"{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}"#;

    fn annotated(annotations: &[(&str, &str)]) -> RawPod {
        let own = json!({"podAntiAffinity": {"own": 1}, "nodeAffinity": {"own": 2}});
        let mut pod = pod(json!({"affinity": own}));
        let labels = [("app", "web"), ("pod-template-hash", "x"), ("tier", "t")];
        pod.labels_mut().extend(labels.map(|(key, value)| (key.to_owned(), value.to_owned())));
        pod.annotations_mut().extend(annotations.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        pod
    }

    fn carried(pod: &RawPod, context: &Context) -> Value {
        let mut spec = pod.spec.clone();
        carry(&mut spec, pod, context).unwrap();
        spec.get("affinity").cloned().unwrap_or_default()
    }

    #[rstest]
    #[case("propagate", json!({"own": 1}))]
    #[case("soft", json!({"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": serde_json::from_str::<Value>(TERM).unwrap()}]}))]
    #[case("hard", json!({"requiredDuringSchedulingIgnoredDuringExecution": [serde_json::from_str::<Value>(TERM).unwrap()]}))]
    fn a_preset_is_added_to_the_virtual_nodes_own(#[case] preset: &str, #[case] expected: Value) {
        let nodes =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}});
        let mut context = context();
        context.patch.affinity = Some(serde_json::from_value(nodes.clone()).unwrap());
        let pod = annotated(&[
            (annotation::ANTI_AFFINITY_PRESET, preset),
            (annotation::ANTI_AFFINITY_LABELS, "app, missing"),
        ]);
        let affinity = carried(&pod, &context);
        assert_eq!((&affinity["podAntiAffinity"], &affinity["nodeAffinity"]), (&expected, &nodes["nodeAffinity"]));
    }

    #[test]
    fn without_names_all_labels_count_but_those_of_one_revision() {
        let pod = annotated(&[(annotation::ANTI_AFFINITY_PRESET, "hard")]);
        let affinity = carried(&pod, &context());
        let path = "/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels";
        assert_eq!(affinity.pointer(path), Some(&json!({"app": "web", "tier": "t"})));
    }

    #[test]
    fn without_a_preset_nothing_of_the_pods_own_goes_over() {
        assert_eq!(carried(&annotated(&[]), &context()), Value::Null);
    }

    #[test]
    fn an_unknown_preset_is_refused_with_what_is_allowed() {
        let pod = annotated(&[(annotation::ANTI_AFFINITY_PRESET, "harder")]);
        let Refusal(message) = carry(&mut pod.spec.clone(), &pod, &context()).unwrap_err();
        assert!(message.contains("'harder'") && message.contains("propagate, soft, hard"), "{message}");
    }
}
