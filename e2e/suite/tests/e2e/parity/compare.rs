//! Two objects side by side, field by field; what may differ is a row in one of the tables here.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Fields that no two pods have in common, wherever they occur: present on both or on neither, whatever the value.
const VARIES: &[(&str, &str)] = &[
    ("startTime", "when it began"),
    ("completionTime", "when it ended"),
    ("startedAt", "when it began"),
    ("finishedAt", "when it ended"),
    ("lastTransitionTime", "when it changed"),
    ("lastUpdateTime", "when it changed"),
    ("lastProbeTime", "when it was looked at"),
    ("deletionTimestamp", "when it is to go"),
    ("containerID", "each container has its own"),
    ("podIP", "each pod has its own"),
    ("ip", "each pod and each node has its own"),
    ("hostIP", "each node has its own"),
    ("pod-template-hash", "the two templates differ in where they want to run"),
    ("controller-revision-hash", "the two templates differ in where they want to run"),
    ("currentRevision", "the two templates differ in where they want to run"),
    ("updateRevision", "the two templates differ in where they want to run"),
    ("controller-uid", "each Job has its own"),
    ("batch.kubernetes.io/controller-uid", "each Job has its own"),
];

/// Where a pod on the virtual node may differ from one on a real node: path (`*` stands for one step), and why.
const ALLOWED: &[(&str, &str)] = &[
    ("metadata.labels.liqo.io/shadowPod", "clients find offloaded pods by it"),
    ("status.containerStatuses.*.imageID", "each node has its own copy of the image"),
    ("status.initContainerStatuses.*.imageID", "each node has its own copy of the image"),
];

/// A field that differs: its path, on the real node, on the virtual node.
pub type Difference = (String, Value, Value);

/// Names of one side, and what stands for them on both.
pub type Names = Vec<(String, &'static str)>;

/// The part of an object that its users observe, with the names of its side taken out.
pub fn observable(object: &Value, names: &Names) -> Value {
    let metadata =
        ["labels", "annotations", "finalizers", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"]
            .into_iter()
            .filter_map(|field| Some((field.to_owned(), object["metadata"].get(field)?.clone())));
    let observed = json!({"metadata": Map::from_iter(metadata), "status": object["status"]});
    normal("", &observed, names)
}

fn normal(field: &str, value: &Value, names: &Names) -> Value {
    if VARIES.iter().any(|(name, _)| *name == field) && !value.is_null() {
        return json!(format!("<{field}>"));
    }
    match value {
        Value::String(text) => {
            let replaced = names.iter().fold(text.clone(), |text, (name, stand_in)| text.replace(name, stand_in));
            json!(replaced)
        }
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| (field.clone(), normal(field, value, names))).collect()
        }
        Value::Array(items) => keyed(items, names),
        other => other.clone(),
    }
}

/// Lists of things with a name or a type are compared by it, not by their place.
fn keyed(items: &[Value], names: &Names) -> Value {
    let key = |item: &Value| item.get("type").or(item.get("name")).and_then(Value::as_str).map(str::to_owned);
    let by_key: Option<BTreeMap<String, Value>> =
        items.iter().map(|item| Some((key(item)?, normal("", item, names)))).collect();
    match by_key {
        Some(by_key) if !items.is_empty() => json!(by_key),
        _ => items.iter().map(|item| normal("", item, names)).collect(),
    }
}

/// What differs and may not.
pub fn differences(real: &Value, virtual_: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(String::new(), real, virtual_, &mut found);
    found.retain(|(path, ..)| !ALLOWED.iter().any(|(allowed, _)| matches(allowed, path)));
    found
}

fn walk(path: String, real: &Value, virtual_: &Value, found: &mut Vec<Difference>) {
    let (Value::Object(left), Value::Object(right)) = (real, virtual_) else {
        if real != virtual_ {
            found.push((path, real.clone(), virtual_.clone()));
        }
        return;
    };
    let fields: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    for field in fields {
        let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        let (left, right) = (left.get(field).unwrap_or(&Value::Null), right.get(field).unwrap_or(&Value::Null));
        walk(path, left, right, found);
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, after)) => path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|step| !step.is_empty() && !step.contains('.')),
    }
}

/// For the output of a test.
pub fn words(differences: &[Difference]) -> String {
    let lines = differences.iter().map(|(path, real, virtual_)| format!("  {path}: real {real}, virtual {virtual_}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The tables, for whoever reads the output.
pub fn print_allowed() {
    println!("may differ between a real and a virtual node, in value:");
    VARIES.iter().for_each(|(field, why)| println!("  {field}: {why}"));
    println!("and altogether:");
    ALLOWED.iter().for_each(|(path, why)| println!("  {path}: {why}"));
}

#[test]
fn only_what_a_table_names_may_differ() {
    let pod = |name: &str, ip: &str, ready: &str, image: &str| {
        let object = json!({"metadata": {"name": name, "generation": 1}, "status": {
            "podIP": ip, "conditions": [{"type": "Ready", "status": ready, "message": format!("pod {name} speaks")}],
            "containerStatuses": [{"name": "main", "imageID": image}],
        }});
        observable(&object, &vec![(name.to_owned(), "<pod>")])
    };
    assert_eq!(differences(&pod("on-real", "1", "True", "x"), &pod("on-virtual", "2", "True", "y")), []);
    let found = differences(&pod("on-real", "1", "True", "x"), &pod("on-virtual", "2", "False", "x"));
    assert_eq!(found, [("status.conditions.Ready.status".to_owned(), json!("True"), json!("False"))]);
    let gone = json!({"metadata": {}, "status": {}});
    assert!(differences(&pod("on-real", "1", "True", "x"), &observable(&gone, &Names::new())).len() > 2);
}
