//! What is made for VirtualNodes, as seen by watches and as last written. An object is written when what is wanted has
//! changed, or when what is there is no longer what the last write left; never otherwise.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PropagationPolicy};
use kube::{Client, Resource, ResourceExt};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use spillway_api::well_known::field_manager;
use spillway_operator::error::{found, only};
use spillway_operator::{Index, ObjectKey};

use super::error::Error;
use super::forge::{MADE_FOR, sha256};
use super::observe::Rollout;

/// What an index keeps of an object that was made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    pub uid: String,
    /// A hash of everything in it that somebody decided, as opposed to what its controllers note in it.
    pub content: String,
    pub deleting: bool,
    /// Of a Deployment only.
    pub rollout: Option<Rollout>,
}

impl Child {
    pub fn of<K: ChildKind>(object: &K) -> Self {
        Self {
            uid: object.uid().unwrap_or_default(),
            content: content(object),
            deleting: object.meta().deletion_timestamp.is_some(),
            rollout: object.rollout(),
        }
    }
}

/// The kinds that are made.
pub trait ChildKind:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
    fn api(client: Client, namespace: &str) -> Api<Self>;

    fn rollout(&self) -> Option<Rollout> {
        None
    }
}

impl ChildKind for ServiceAccount {
    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }
}

impl ChildKind for RoleBinding {
    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }
}

impl ChildKind for ClusterRoleBinding {
    fn api(client: Client, _: &str) -> Api<Self> {
        Api::all(client)
    }
}

impl ChildKind for Deployment {
    fn api(client: Client, namespace: &str) -> Api<Self> {
        Api::namespaced(client, namespace)
    }

    fn rollout(&self) -> Option<Rollout> {
        Some(Rollout::of(self))
    }
}

/// The objects of one kind: what the watch shows of them, and what was last written.
pub struct Children {
    pub index: Arc<Index<Child>>,
    written: Mutex<HashMap<ObjectKey, Written>>,
}

#[derive(Clone, PartialEq, Eq)]
struct Written {
    wanted: String,
    left: String,
}

impl Default for Children {
    fn default() -> Self {
        Self { index: Arc::new(Index::default()), written: Mutex::default() }
    }
}

impl Children {
    /// Server-side apply, if there is a difference.
    pub async fn apply<K: ChildKind>(&self, client: &Client, wanted: &K) -> Result<(), Error> {
        let key = ObjectKey::of(wanted);
        let wanted_hash = content(wanted);
        let seen = self.index.get(&key);
        let last = self.written.lock().get(&key).cloned();
        if let (Some(seen), Some(last)) = (&seen, &last)
            && last.wanted == wanted_hash
            && last.left == seen.content
        {
            return Ok(());
        }
        let api = K::api(client.clone(), &key.namespace);
        let what = format!("{} {key}", K::kind(&()));
        if seen.is_none() {
            refuse_foreign(&api, wanted, &what).await?;
        }
        let params = PatchParams::apply(field_manager::PEERING).force();
        let left = api
            .patch(&key.name, &params, &Patch::Apply(wanted))
            .await
            .map_err(Error::request(format!("apply {what}")))?;
        tracing::debug!(object = what, "applied");
        let left = Child::of(&left);
        self.written.lock().insert(key.clone(), Written { wanted: wanted_hash, left: left.content.clone() });
        // Noted before the watch shows it, so that the next look sees what was written.
        self.index.insert(key, left);
        Ok(())
    }

    /// Deletes the very object that was seen. True when there is none.
    pub async fn delete<K: ChildKind>(
        &self,
        client: &Client,
        key: &ObjectKey,
        propagation: PropagationPolicy,
    ) -> Result<bool, Error> {
        self.written.lock().remove(key);
        let Some(child) = self.index.get(key) else {
            return Ok(true);
        };
        if child.deleting {
            return Ok(false);
        }
        let params = DeleteParams {
            propagation_policy: Some(propagation),
            preconditions: Some(only(child.uid.clone())),
            ..DeleteParams::default()
        };
        let deleted = K::api(client.clone(), &key.namespace).delete(&key.name, &params).await;
        found(deleted).map_err(Error::request(format!("delete {} {key}", K::kind(&()))))?;
        Ok(false)
    }
}

/// An object that was not made for this VirtualNode is neither adopted nor changed, whatever its labels say.
async fn refuse_foreign<K: ChildKind>(api: &Api<K>, wanted: &K, what: &str) -> Result<(), Error> {
    let existing = found(api.get_metadata(&wanted.name_any()).await);
    let existing = existing.map_err(Error::request(format!("read {what}")))?;
    match existing {
        Some(object) if object.annotations().get(MADE_FOR) != wanted.annotations().get(MADE_FOR) => {
            Err(Error::blocked("NameTaken", format!("{what} exists and was not made by Spillway: rename or delete it")))
        }
        _ => Ok(()),
    }
}

/// Which VirtualNode each object was made for; a deletion tells only the object's own name.
#[derive(Clone, Default)]
pub struct MadeFor(Arc<Mutex<HashMap<ObjectKey, ObjectKey>>>);

impl MadeFor {
    pub fn note<K: Resource>(&self, object: &K) -> Option<ObjectKey> {
        let virtual_node = object.annotations().get(MADE_FOR)?;
        let (namespace, name) = virtual_node.split_once('/')?;
        let virtual_node = ObjectKey::new(namespace, name);
        self.0.lock().insert(ObjectKey::of(object), virtual_node.clone());
        Some(virtual_node)
    }

    /// The VirtualNode of an object of which a watch told; forgotten with the object.
    pub fn of(&self, key: &ObjectKey, exists: bool) -> Option<ObjectKey> {
        let mut known = self.0.lock();
        if exists { known.get(key).cloned() } else { known.remove(key) }
    }
}

fn content<K: ChildKind>(object: &K) -> String {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            for noted in ["resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"] {
                metadata.remove(noted);
            }
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.retain(|key, _| !key.starts_with("deployment.kubernetes.io/"));
            }
        }
    }
    sha256(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(value: Value) -> Deployment {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vk-a"}});
        for (key, part) in value.as_object().expect("an object") {
            object[key] = part.clone();
        }
        serde_json::from_value(object).expect("a Deployment")
    }

    #[test]
    fn what_controllers_note_is_no_difference_but_a_hand_is() {
        let spec = |replicas: i32| json!({"replicas": replicas, "selector": {}, "template": {"metadata": {}, "spec": {"containers": []}}});
        let made = content(&deployment(json!({"spec": spec(1)})));
        let rolled = deployment(json!({
            "spec": spec(1), "status": {"availableReplicas": 1},
            "metadata": {"name": "vk-a", "resourceVersion": "7", "generation": 2, "uid": "u",
                         "annotations": {"deployment.kubernetes.io/revision": "1"}},
        }));
        let annotated = content(&deployment(json!({"spec": spec(1), "metadata": {"name": "vk-a", "annotations": {}}})));
        assert_eq!(content(&rolled), annotated);
        assert_ne!(content(&deployment(json!({"spec": spec(0)}))), made);
    }

    #[test]
    fn a_deletion_still_leads_to_the_virtual_node() {
        let made_for = MadeFor::default();
        let child = deployment(json!({
            "metadata": {"name": "vk-a", "namespace": "t", "annotations": {MADE_FOR: "t/a"}},
        }));
        let key = ObjectKey::of(&child);
        assert_eq!(made_for.note(&child), Some(ObjectKey::new("t", "a")));
        assert_eq!(made_for.of(&key, true), Some(ObjectKey::new("t", "a")));
        assert_eq!(made_for.of(&key, false), Some(ObjectKey::new("t", "a")));
        assert_eq!(made_for.of(&key, true), None);
    }
}
