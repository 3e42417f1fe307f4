//! What containers are told of their pod: that of the pod at home, whose name and place their users know.

use kube::ResourceExt;
use serde_json::{Value, json};
use spillway_api::{RawObject, RawPod};

use super::Context;

/// (Ephemeral containers are carried as they are: they are compared whole to tell whether they changed.)
const LISTS: &[&str] = &["containers", "initContainers"];

pub fn carry(spec: &mut RawObject, pod: &RawPod, context: &Context) {
    let on_host = pod.spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in LISTS {
        for container in spec.get_mut(*list).and_then(Value::as_array_mut).into_iter().flatten() {
            // The API server gave them to a pod in its host's network, in which this one will not be.
            if on_host {
                for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                    port.as_object_mut().map(|port| port.remove("hostPort"));
                }
            }
            for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(value) = known_at_home(variable, pod, context) {
                    *variable = json!({"name": variable["name"], "value": value});
                }
            }
        }
    }
}

/// The value of a variable that would have another one in the remote cluster.
fn known_at_home(variable: &Value, pod: &RawPod, context: &Context) -> Option<String> {
    match variable.pointer("/valueFrom/fieldRef/fieldPath")?.as_str()? {
        "metadata.namespace" => pod.namespace(),
        "metadata.uid" => pod.uid(),
        "spec.nodeName" => Some(context.node_name.clone()),
        "spec.serviceAccountName" => Some(pod.spec_str("serviceAccountName").to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_told_of_its_pod_at_home() {
        let field = |path: &str| json!({"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let paths = ["metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.podIP"];
        let env: Vec<_> = paths.map(field).to_vec();
        let pod = RawPod {
            metadata: serde_json::from_value(json!({"name": "web", "namespace": "shop", "uid": "u1"})).unwrap(),
            spec: json!({
                "serviceAccountName": "seller", "hostNetwork": true,
                "containers": [{"name": "c", "env": env, "ports": [{"containerPort": 80, "hostPort": 80}]}],
                "initContainers": [{"name": "i", "env": [field("metadata.namespace")]}],
            })
            .as_object()
            .cloned()
            .unwrap(),
            ..RawPod::default()
        };
        let mut spec = pod.spec.clone();
        carry(&mut spec, &pod, &Context { node_name: "milan".to_owned(), ..Context::default() });
        let literal = |value: &str| json!({"name": "V", "value": value});
        let told = json!([literal("shop"), literal("u1"), literal("milan"), literal("seller"), field("status.podIP")]);
        assert_eq!(spec["containers"][0]["env"], told);
        assert_eq!(spec["containers"][0]["ports"], json!([{"containerPort": 80}]));
        assert_eq!(spec["initContainers"][0]["env"], json!([literal("shop")]));
    }
}
