use super::*;
use serde_json::{Value, json};

fn virtual_node(spec: Value) -> VirtualNode {
    serde_json::from_value(json!({
        "apiVersion": "offloading.liqo.io/v1beta1", "kind": "VirtualNode",
        "metadata": {"name": "away", "namespace": "liqo-tenant-away", "uid": "uid-1"},
        "spec": spec,
    }))
    .expect("a VirtualNode")
}

fn minimal() -> VirtualNode {
    virtual_node(json!({"clusterID": "away-id", "kubeconfigSecretRef": {"name": "kubeconfig-away"}}))
}

fn options(spec: Value) -> VkOptionsTemplateSpec {
    let mut full = json!({
        "createNode": true, "disableNetworkCheck": true, "containerImage": "spillway/spillway:0.1.0",
        "metricsEnabled": true,
    });
    for (key, value) in spec.as_object().expect("an object") {
        full[key] = value.clone();
    }
    serde_json::from_value(full).expect("options")
}

fn forge(virtual_node: &VirtualNode, options: &VkOptionsTemplateSpec) -> Result<Forged, ForgeError> {
    let create_node = creates_node(virtual_node, options);
    all(&Inputs { virtual_node, options, home: &"home-id".into(), create_node })
}

fn deployment(virtual_node: &VirtualNode, options: &VkOptionsTemplateSpec) -> Value {
    serde_json::to_value(forge(virtual_node, options).expect("forged").deployment).expect("JSON")
}

#[test]
fn a_minimal_virtual_node() {
    let forged = forge(&minimal(), &options(json!({}))).unwrap();
    insta::assert_yaml_snapshot!("deployment", forged.deployment);
    insta::assert_yaml_snapshot!("service_account", forged.service_account);
    insta::assert_yaml_snapshot!("cluster_binding", forged.cluster_binding);
    insta::assert_yaml_snapshot!("tenant_binding", forged.tenant_binding);
    insta::assert_yaml_snapshot!("node_lease_binding", forged.node_lease_binding);
}

#[test]
fn every_option_of_the_template_is_honoured() {
    let options = options(json!({
        "extraLabels": {"team": "a", "liqo.io/virtual-node": "cannot be overridden"},
        "extraAnnotations": {"note": "b"},
        "resources": {"requests": {"cpu": 1, "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "replicas": 2, "imagePullSecrets": [{"name": "registry"}], "pullPolicy": "Always",
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "extraArgs": ["--log=debug"], "metricsAddress": ":9090", "createNode": false,
        "nodeExtraLabels": {"a": "1", "b": "2"}, "nodeExtraAnnotations": {"c": "3"},
    }));
    let deployment = deployment(&minimal(), &options);
    let pod = &deployment["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    assert_eq!(deployment["metadata"]["labels"]["team"], "a");
    assert_eq!(pod["metadata"]["labels"]["team"], "a");
    assert_eq!(pod["metadata"]["labels"]["liqo.io/virtual-node"], "away");
    assert_eq!(deployment["metadata"]["annotations"]["note"], "b");
    assert_eq!(pod["metadata"]["annotations"]["prometheus.io/port"], "9090");
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "256Mi"}})
    );
    assert_eq!(deployment["spec"]["replicas"], 2);
    assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(pod["spec"]["tolerations"], json!([{"key": "k", "operator": "Exists"}]));
    let args = container["args"].as_array().unwrap();
    assert_eq!(args.last().unwrap(), "--log=debug");
    assert!(args.contains(&json!("--metrics-address=0.0.0.0:9090")));
    assert!(args.contains(&json!("--create-node=false")));
    assert!(args.contains(&json!("--node-extra-labels=a=1,b=2")));
    assert!(args.contains(&json!("--node-extra-annotations=c=3")));
    assert_eq!(
        deployment["spec"]["selector"]["matchLabels"].as_object().unwrap().len(),
        3,
        "extra labels may change, the selector may not"
    );
}

#[test]
fn without_metrics_nothing_asks_to_be_scraped_but_probes_work() {
    let deployment = deployment(&minimal(), &options(json!({"metricsEnabled": false})));
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["metadata"]["annotations"].get("prometheus.io/scrape"), None);
    assert_eq!(pod["spec"]["containers"][0]["ports"][0]["containerPort"], 8080);
}

#[test]
fn a_manifest_of_liqo_keeps_its_labels_annotations_image_and_resources() {
    let virtual_node = virtual_node(json!({
        "clusterID": "away-id", "createNode": false, "kubeconfigSecretRef": {"name": "s"},
        "template": {
            "metadata": {"labels": {"tier": "x"}, "annotations": {"note": "d"}},
            "spec": {"selector": {"matchLabels": {"other": "selector"}}, "template": {
                "metadata": {"labels": {"tier": "y", "offloading.liqo.io/component": "mine"}, "annotations": {"note": "p"}},
                "spec": {"hostNetwork": true, "nodeSelector": {"disk": "ssd"}, "affinity": {"podAffinity": {}}, "containers": [{"name": "virtual-kubelet", "image": "their/image:1",
                    "command": ["/bin/sh"], "resources": {"limits": {"memory": "1Gi"}}}]},
            }},
        },
    }));
    let deployment = deployment(&virtual_node, &options(json!({"extraLabels": {"tier": "z"}})));
    let pod = &deployment["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    assert_eq!(deployment["metadata"]["labels"]["tier"], "x");
    assert_eq!(deployment["metadata"]["annotations"]["note"], "d");
    assert_eq!(pod["metadata"]["labels"]["tier"], "y");
    assert_eq!(pod["metadata"]["annotations"]["note"], "p");
    assert_eq!(container["image"], "their/image:1");
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(pod["metadata"]["labels"]["offloading.liqo.io/component"], "virtual-kubelet");
    assert_eq!(container["command"], json!(["/usr/bin/virtual-kubelet"]));
    assert_eq!(pod["spec"].get("hostNetwork"), None);
    assert_eq!(pod["spec"]["nodeSelector"], json!({"disk": "ssd"}));
    assert_eq!(pod["spec"]["affinity"]["podAffinity"], json!({}));
    assert_eq!(pod["spec"]["affinity"]["nodeAffinity"].as_object().map(|part| part.len()), Some(1));
}

#[test]
fn a_changed_offloading_patch_rolls_the_pod_and_nothing_else_does() {
    let hash = |virtual_node: &VirtualNode, options: &VkOptionsTemplateSpec| {
        deployment(virtual_node, options)["spec"]["template"]["metadata"]["annotations"]
            ["liqo.io/offloading-patch-hash"]
            .clone()
    };
    let plain = options(json!({}));
    let before = hash(&minimal(), &plain);
    let mut changed = minimal();
    changed.spec.offloading_patch = Some(serde_json::from_value(json!({"nodeSelector": {"disk": "ssd"}})).unwrap());
    assert_ne!(hash(&changed, &plain), before);
    assert_ne!(hash(&minimal(), &options(json!({"labelsNotReflected": ["a"]}))), before);
    let mut relabelled = minimal();
    relabelled.spec.labels.insert("zone".to_owned(), "b".to_owned());
    assert_eq!(hash(&relabelled, &plain), before);
}

#[test]
fn what_is_missing_is_named() {
    let plain = options(json!({}));
    let refused = |virtual_node: &VirtualNode, options: &VkOptionsTemplateSpec| {
        forge(virtual_node, options).expect_err("refused")
    };
    assert_eq!(refused(&virtual_node(json!({"kubeconfigSecretRef": {"name": "s"}})), &plain), ForgeError::NoClusterId);
    assert_eq!(refused(&virtual_node(json!({"clusterID": "a"})), &plain), ForgeError::NoKubeconfigSecret);
    let mut long = minimal();
    long.metadata.name = Some("n".repeat(64));
    assert_eq!(refused(&long, &plain), ForgeError::NameTooLong(64));
    for bad in [json!({"metricsAddress": "nonsense"}), json!({"containerImage": ""})] {
        assert_eq!(refused(&minimal(), &options(bad)).reason(), "VkOptionsTemplateInvalid");
    }
    let mut broken = minimal();
    broken.spec.template = Some(serde_json::from_value(json!({"metadata": {"labels": {"a": 1}}, "spec": {}})).unwrap());
    assert_eq!(refused(&broken, &plain).reason(), "TemplateInvalid");
}

#[test]
fn long_names_are_shortened_and_stay_apart() {
    let (one, two) = ("n".repeat(253), format!("{}m", "n".repeat(252)));
    let names = |name: &str| Names::of(&ObjectKey::new("tenant", name));
    assert_ne!(names(&one), names(&two));
    assert!(names(&one).in_tenant.name.len() <= 240);
    assert!(names(&one).cluster_binding.name.len() <= 253);
    let value = |name: &str| labels(name, &"c".into())[label::VIRTUAL_NODE].clone();
    assert_eq!(value(&one).len(), 63);
    assert_ne!(value(&one), value(&two));
    assert_eq!(value(&"n".repeat(63)), "n".repeat(63));
    let dotted = format!("{}.{}", "n".repeat(51), "m".repeat(20));
    assert!(!value(&dotted).contains(".-"), "{}", value(&dotted));
}

#[test]
fn equal_joins_of_different_names_do_not_collide() {
    let one = Names::of(&ObjectKey::new("a-b", "c"));
    let two = Names::of(&ObjectKey::new("a", "b-c"));
    assert_ne!(one.cluster_binding, two.cluster_binding);
}
