//! Schemas for what the CRDs embed. They stay structural and keep the fields that this build does not know.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::k8s::LocalObjectReference;

const KEEP_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const MAP_TYPE: &str = "x-kubernetes-map-type";

/// What Kubernetes accepts as a quantity, when it is written as a string.
pub(crate) const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// An object of any shape.
pub(crate) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// The same, for what one writer writes as a whole: the API server need not work out, with every write, who owns each leaf.
pub(crate) fn open_whole(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = open_object(generator);
    schema.insert(MAP_TYPE.to_owned(), json!("atomic"));
    schema
}

/// A list of objects of any shape.
pub(crate) fn open_objects(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": open_object(generator) })
}

/// The schema that Kubernetes has for `T`, which also lets fields pass that it does not name.
pub(crate) fn open<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = T::json_schema(generator);
    if let Some(object) = schema.as_object_mut() {
        open_up(object);
    }
    schema
}

/// A list of [`open`] items.
pub(crate) fn open_list<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": open::<T>(generator) })
}

/// Like [`open`], for objects that one writer owns as a whole under server-side apply (references and selectors).
pub(crate) fn open_atomic<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = open::<T>(generator);
    schema.insert(MAP_TYPE.to_owned(), json!("atomic"));
    schema
}

/// The name of an object in the same namespace.
pub(crate) fn local_reference(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = open_atomic::<LocalObjectReference>(generator);
    // An empty reference is as good as none, and existing clients write it.
    schema.remove("required");
    schema
}

/// A list of [`local_reference`]s.
pub(crate) fn local_references(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": local_reference(generator) })
}

/// Bytes, written in base64.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "byte" })
}

/// A list of IP networks in CIDR notation.
pub(crate) fn cidrs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "format": "cidr" } })
}

fn open_up(schema: &mut Map<String, Value>) {
    if schema.contains_key(INT_OR_STRING) {
        schema.insert("pattern".to_owned(), json!(QUANTITY_PATTERN));
        return;
    }
    if schema.contains_key("properties") {
        schema.insert(KEEP_UNKNOWN.to_owned(), json!(true));
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(nested)) = schema.get_mut(key) {
            open_up(nested);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for nested in properties.values_mut().filter_map(Value::as_object_mut) {
            open_up(nested);
        }
    }
}
