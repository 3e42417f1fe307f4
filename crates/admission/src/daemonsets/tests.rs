use super::*;
use json_patch::Patch;
use proptest::prelude::*;
use rstest::rstest;

fn daemonset(pod: Value) -> Value {
    json!({"spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {"spec": pod}}})
}

fn with_terms(terms: Value) -> Value {
    daemonset(json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": terms}}}}))
}

fn mutated(object: &Value) -> Value {
    let mut changed = object.clone();
    json_patch::patch(&mut changed, &Patch(mutate(object, None))).expect("the patch applies");
    changed
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": operator, "values": values})
}

fn off() -> Value {
    expression("liqo.io/type", "NotIn", &["virtual-node"])
}

#[rstest]
#[case::nothing(json!({}), json!({}))]
#[case::nulls(json!({"affinity": null}), json!({}))]
#[case::only_a_preference(
    json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}}),
    json!({"preferredDuringSchedulingIgnoredDuringExecution": []})
)]
fn without_terms_it_gets_one(#[case] pod: Value, #[case] kept: Value) {
    let changed = mutated(&daemonset(pod));
    let mut affinity = changed["spec"]["template"]["spec"]["affinity"]["nodeAffinity"].clone();
    let required = affinity.as_object_mut().unwrap().remove("requiredDuringSchedulingIgnoredDuringExecution");
    assert_eq!(required, Some(json!({"nodeSelectorTerms": [{"matchExpressions": [off()]}]})));
    assert_eq!(affinity, kept);
}

#[test]
fn other_affinity_stays() {
    let pods = json!({"requiredDuringSchedulingIgnoredDuringExecution": []});
    let changed = mutated(&daemonset(json!({"affinity": {"podAntiAffinity": pods}})));
    let affinity = &changed["spec"]["template"]["spec"]["affinity"];
    assert_eq!(affinity["podAntiAffinity"], pods);
    assert!(affinity["nodeAffinity"].is_object());
}

#[test]
fn every_term_gets_it_beside_what_it_says() {
    let zone = |name: &str| expression("zone", "In", &[name]);
    let by_name = json!([{"key": "metadata.name", "operator": "In", "values": ["n1"]}]);
    let terms = json!([
        {"matchExpressions": [zone("a")]},
        {"matchExpressions": [zone("b"), zone("c")], "matchFields": by_name},
        {"matchFields": by_name},
        {"matchFields": by_name, "matchExpressions": []},
    ]);
    let expected = json!([
        {"matchExpressions": [zone("a"), off()]},
        {"matchExpressions": [zone("b"), zone("c"), off()], "matchFields": by_name},
        {"matchFields": by_name, "matchExpressions": [off()]},
        {"matchFields": by_name, "matchExpressions": [off()]},
    ]);
    assert_eq!(mutated(&with_terms(terms)), with_terms(expected));
}

#[rstest]
#[case::selects_virtual_nodes(daemonset(json!({"nodeSelector": {"liqo.io/type": "virtual-node"}})))]
#[case::selects_one_cluster(daemonset(json!({"nodeSelector": {"liqo.io/remote-cluster-id": "away"}})))]
#[case::has_it_already(with_terms(json!([{"matchExpressions": [off()]}])))]
#[case::term_of_virtual_nodes(with_terms(json!([{"matchExpressions": [expression("liqo.io/type", "In", &["virtual-node"])]}])))]
#[case::term_that_matches_nothing(with_terms(json!([{}, {"matchExpressions": []}, {"matchFields": null}])))]
#[case::no_terms(with_terms(json!([])))]
#[case::no_template(json!({"spec": {}}))]
#[case::no_object(json!("text"))]
#[case::nonsense_affinity(daemonset(json!({"affinity": "none"})))]
#[case::nonsense_terms(with_terms(json!([1, "a", {"matchExpressions": "all"}, {"matchExpressions": 1, "matchFields": [1]}])))]
fn left_alone(#[case] object: Value) {
    assert_eq!(mutate(&object, None), []);
}

#[test]
fn an_update_that_leaves_the_template_starts_no_rollout() {
    let before = daemonset(json!({"containers": [{"image": "agent:1"}]}));
    let mut relabelled = before.clone();
    relabelled["spec"]["minReadySeconds"] = json!(5);
    assert_eq!(mutate(&relabelled, Some(&before)), []);
    let newer = daemonset(json!({"containers": [{"image": "agent:2"}]}));
    assert_eq!(mutate(&newer, Some(&before)).len(), 1);
    // Somebody replaced it by a manifest that knows nothing of what was added: the result is what it was.
    assert_eq!(mutate(&before, Some(&mutated(&before))), mutate(&before, None));
}

/// The labels of a node, and which of these terms let it in, as the scheduler has it.
fn matches(terms: &Value, node: &Value, which: impl Fn(&Value) -> bool) -> bool {
    let holds = |expression: &Value| {
        let value = node.get(expression["key"].as_str().unwrap());
        let listed = value.is_some_and(|value| expression["values"].as_array().unwrap().contains(value));
        match expression["operator"].as_str().unwrap() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            _ => value.is_none(),
        }
    };
    terms.as_array().unwrap().iter().filter(|term| which(term)).any(|term| {
        let expressions = term["matchExpressions"].as_array().unwrap();
        !expressions.is_empty() && expressions.iter().all(holds)
    })
}

fn any_terms() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec!["zone", "liqo.io/type", "disk"]);
    let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist"]);
    let value = prop::sample::select(vec!["a", "b", "virtual-node"]);
    let expression = (key, operator, value).prop_map(|(key, operator, value)| expression(key, operator, &[value]));
    let term = prop::collection::vec(expression, 0..3).prop_map(|all| json!({"matchExpressions": all}));
    prop::collection::vec(term, 1..4).prop_map(Value::Array)
}

proptest! {
    #[test]
    fn real_nodes_match_as_before_and_virtual_ones_only_by_terms_that_speak_of_them(terms in any_terms()) {
        let object = with_terms(terms.clone());
        let changed = mutated(&object);
        prop_assert_eq!(mutate(&changed, None), [], "a second look changes nothing");
        let pointer = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
        let after = changed.pointer(pointer).unwrap();
        let explicit = |term: &Value| {
            term["matchExpressions"].as_array().unwrap().iter().any(|expression| expression["key"] == "liqo.io/type")
        };
        for node in [json!({"zone": "a"}), json!({"zone": "b", "disk": "a"}), json!({})] {
            prop_assert_eq!(matches(after, &node, |_| true), matches(&terms, &node, |_| true), "real: {}", node);
        }
        for node in [json!({"liqo.io/type": "virtual-node", "zone": "a"}), json!({"liqo.io/type": "virtual-node", "disk": "b"})] {
            prop_assert_eq!(matches(after, &node, |_| true), matches(&terms, &node, explicit), "virtual: {}", node);
        }
    }
}
