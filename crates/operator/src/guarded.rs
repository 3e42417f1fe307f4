//! An object that may turn out to be one that this build can't decode: one bad object must not hide all the others of its
//! list.
//!
//! kube's own guard decodes every object three times over, by way of a tree and a copy of it; an operator does little else,
//! so this one keeps the text and decodes it once.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub struct Guarded<K>(pub Result<K, Undecodable>);

#[derive(Clone, Debug, thiserror::Error)]
#[error("{error}")]
pub struct Undecodable {
    pub error: String,
    pub metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct MetadataOnly {
    metadata: ObjectMeta,
}

/// Only from JSON text, as everything that comes from an API server.
impl<'de, K: DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        serde_json::from_str(text.get()).map(|object| Self(Ok(object))).or_else(|error| {
            let MetadataOnly { metadata } = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
            Ok(Self(Err(Undecodable { error: error.to_string(), metadata })))
        })
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &K::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &K::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &K::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &K::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.as_ref().map_or_else(|undecodable| &undecodable.metadata, K::meta)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.as_mut().map_or_else(|undecodable| &mut undecodable.metadata, K::meta_mut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::ResourceExt;
    use kube::core::{ObjectList, WatchEvent};
    use rstest::rstest;

    #[rstest]
    #[case::good(r#"{"metadata":{"name":"a"},"data":{"x":"y"}}"#, true)]
    #[case::bad(r#"{"metadata":{"name":"a"},"data":"none"}"#, false)]
    fn one_bad_object_hides_no_other(#[case] object: &str, #[case] decodable: bool) {
        let list = format!(r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{}},"items":[{object}]}}"#);
        let list: ObjectList<Guarded<ConfigMap>> = serde_json::from_str(&list).unwrap();
        let event = format!(r#"{{"type":"MODIFIED","object":{object}}}"#);
        let WatchEvent::Modified(watched) = serde_json::from_str::<WatchEvent<Guarded<ConfigMap>>>(&event).unwrap()
        else {
            panic!("a change")
        };
        for object in list.items.into_iter().chain([watched]) {
            assert_eq!(object.name_any(), "a");
            assert_eq!(object.0.is_ok(), decodable);
        }
    }

    #[test]
    fn what_is_no_object_at_all_is_an_error() {
        assert!(serde_json::from_str::<Guarded<ConfigMap>>("[1]").is_err());
    }
}
