//! Workloads of every kind, on a real node and on the virtual one.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::watcher::Config;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use spillway_e2e::{Namespace, wait};

use super::cases::{REAL_NODE, container, placed};
use super::compare::{self, Names, differences, observable};
use super::names;
use crate::pods::{SERVE, is_ready};
use crate::{VIRTUAL_NODE, offloaded};

trait Workload:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + 'static
{
}
impl Workload for Deployment {}
impl Workload for StatefulSet {}
impl Workload for Job {}

/// One workload twice, each with the pods that it should end with.
struct Pair<'a> {
    namespace: &'a Namespace,
    name: &'a str,
}

impl Pair<'_> {
    fn api<K: Workload>(&self) -> Api<K> {
        Api::namespaced(self.namespace.home.client.clone(), &self.namespace.name)
    }

    fn named(&self, on_virtual: bool) -> String {
        format!("{}-{}", self.name, if on_virtual { "virtual" } else { "real" })
    }

    /// `spec` is that of the workload, with the pods' own spec in its template.
    async fn create<K: Workload>(&self, spec: &Value) -> Result<()> {
        for on_virtual in [false, true] {
            let (name, mut spec) = (self.named(on_virtual), spec.clone());
            let labels = json!({"app": name});
            if K::kind(&()) != "Job" {
                spec["selector"] = json!({"matchLabels": labels});
            }
            spec["template"]["metadata"] = json!({"labels": labels});
            spec["template"]["spec"] = placed(&spec["template"]["spec"], on_virtual);
            let workload = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
            self.api::<K>().create(&PostParams::default(), &workload).await?;
        }
        Ok(())
    }

    /// Waits until both have settled and nothing differs, neither of them nor of their pods.
    async fn agree<K: Workload>(&self, settled: impl Fn(&Value) -> bool) -> Result<()> {
        let both = [self.named(false), self.named(true)];
        let mut last = Vec::new();
        let mut pods = BTreeMap::new();
        let pods_agree = |seen: &BTreeMap<String, Pod>| {
            pods = seen.clone();
            let [real, on_virtual] = both.each_ref().map(|name| self.pods_of(seen, name));
            last = differences(&json!(real), &json!(on_virtual));
            !real.is_empty() && last.is_empty()
        };
        let work = async {
            let agreed = |seen: &BTreeMap<String, K>| {
                both.iter().all(|name| seen.get(name).is_some_and(|w| settled(&json!(w)["status"])))
            };
            wait::until("both to settle", self.api::<K>(), Config::default(), agreed).await?;
            wait::until("their pods to agree", self.namespace.home_pods(), Config::default(), pods_agree).await?;
            anyhow::Ok(())
        };
        let waited = work.await;
        ensure!(last.is_empty(), "{}: the pods differ:\n{}", self.name, compare::words(&last));
        waited.with_context(|| self.name.to_owned())?;
        let agree = |seen: &BTreeMap<String, K>| {
            let [real, on_virtual] = both
                .each_ref()
                .map(|name| seen.get(name).map(|workload| observable(&json!(workload), &self.names(&pods, name))));
            last = differences(&json!(real), &json!(on_virtual));
            last.is_empty()
        };
        match wait::until("both to agree", self.api::<K>(), Config::default(), agree).await {
            Ok(_) => Ok(()),
            Err(_) => bail!("{}: the {}s differ:\n{}", self.name, K::kind(&()), compare::words(&last)),
        }
    }

    /// What messages call the workload and its pods.
    fn names(&self, pods: &BTreeMap<String, Pod>, workload: &str) -> Names {
        let of_workload: Vec<_> =
            pods.values().filter(|pod| pod.labels().get("app").is_some_and(|app| app == workload)).collect();
        let mut all: Names = of_workload.iter().flat_map(|pod| names(pod, self.namespace, None)).collect();
        let hashes = of_workload.iter().filter_map(|pod| pod.labels().get("pod-template-hash"));
        all.extend(hashes.map(|hash| (hash.clone(), "<hash>")));
        all.push((workload.to_owned(), "<workload>"));
        all
    }

    /// Its pods as observed, in an order that does not depend on names.
    fn pods_of(&self, pods: &BTreeMap<String, Pod>, workload: &str) -> BTreeMap<String, Value> {
        let names = self.names(pods, workload);
        let of_workload = pods.values().filter(|pod| pod.labels().get("app").is_some_and(|app| app == workload));
        let mut observed: Vec<_> = of_workload.map(|pod| observable(&json!(pod), &names)).collect();
        observed.sort_by_key(Value::to_string);
        observed.into_iter().enumerate().map(|(index, pod)| (format!("pods[{index}]"), pod)).collect()
    }
}

fn template(command: &str, fields: Value) -> Value {
    let mut spec = json!({"containers": [container("main", command)]});
    if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        spec.extend(fields);
    }
    json!({"spec": spec})
}

fn has_condition(status: &Value, type_: &str) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

#[tokio::test]
async fn a_deployment_and_a_stateful_set_end_as_on_a_real_node() -> Result<()> {
    offloaded(async |namespace| {
        let web = Pair { namespace: &namespace, name: "web" };
        let store = Pair { namespace: &namespace, name: "store" };
        web.create::<Deployment>(&json!({"replicas": 2, "template": template(SERVE, json!({}))})).await?;
        store
            .create::<StatefulSet>(
                &json!({"serviceName": "store", "replicas": 2, "template": template(SERVE, json!({}))}),
            )
            .await?;
        web.agree::<Deployment>(|status| status["availableReplicas"] == 2).await?;
        store.agree::<StatefulSet>(|status| status["availableReplicas"] == 2).await?;
        for on_virtual in [false, true] {
            let (fewer, params) = (Patch::Merge(json!({"spec": {"replicas": 1}})), PatchParams::default());
            web.api::<Deployment>().patch(&web.named(on_virtual), &params, &fewer).await?;
            store.api::<StatefulSet>().patch(&store.named(on_virtual), &params, &fewer).await?;
        }
        web.agree::<Deployment>(|status| status["replicas"] == 1).await?;
        store.agree::<StatefulSet>(|status| status["replicas"] == 1).await
    })
    .await
}

#[tokio::test]
async fn jobs_succeed_and_fail_as_on_a_real_node() -> Result<()> {
    offloaded(async |namespace| {
        let never = || json!({"restartPolicy": "Never"});
        let policy = json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]});
        let ignore = json!({"rules": [{"action": "Count", "onExitCodes": {"operator": "In", "values": [3]}}]});
        let done = |status: &Value| has_condition(status, "Complete");
        let failed = |status: &Value| has_condition(status, "Failed");
        let pair = |name| Pair { namespace: &namespace, name };
        let (good, bad, forbidden, counted, retried, brief) =
            (pair("good"), pair("bad"), pair("forbidden"), pair("counted"), pair("retried"), pair("brief"));
        good.create::<Job>(&json!({"completions": 2, "parallelism": 2, "template": template("sleep 1", never())}))
            .await?;
        bad.create::<Job>(&json!({"backoffLimit": 1, "template": template("exit 3", never())})).await?;
        forbidden.create::<Job>(&json!({"podFailurePolicy": policy, "template": template("exit 42", never())})).await?;
        counted
            .create::<Job>(
                &json!({"backoffLimit": 0, "podFailurePolicy": ignore, "template": template("exit 3", never())}),
            )
            .await?;
        let on_failure = template("exit 1", json!({"restartPolicy": "OnFailure"}));
        retried.create::<Job>(&json!({"backoffLimit": 1, "template": on_failure})).await?;
        brief.create::<Job>(&json!({"ttlSecondsAfterFinished": 0, "template": template("true", never())})).await?;
        good.agree::<Job>(done).await?;
        forbidden.agree::<Job>(failed).await?;
        counted.agree::<Job>(failed).await?;
        bad.agree::<Job>(failed).await?;
        let gone =
            |seen: &BTreeMap<String, Job>| [true, false].iter().all(|side| !seen.contains_key(&brief.named(*side)));
        wait::until("the Jobs whose time to live is over to go", brief.api::<Job>(), Config::default(), gone).await?;
        for pods in [namespace.home_pods(), namespace.away_pods()] {
            let none = |pods: &BTreeMap<String, Pod>| !pods.keys().any(|name| name.starts_with("brief-"));
            wait::until("nothing left of them", pods, Config::default(), none).await?;
        }
        let ended = |seen: &BTreeMap<String, Job>| {
            [true, false]
                .iter()
                .all(|side| seen.get(&retried.named(*side)).is_some_and(|job| failed(&json!(job)["status"])))
        };
        // Its controller deletes the pods of this one: there is nothing of them to compare.
        wait::until("the Job that restarts in place to fail", retried.api::<Job>(), Config::default(), ended)
            .await
            .map(drop)
    })
    .await
}

#[tokio::test]
async fn a_daemon_set_has_the_same_pod_on_a_real_node_and_on_the_virtual_one() -> Result<()> {
    offloaded(async |namespace| {
        let on = json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": [REAL_NODE, VIRTUAL_NODE]}]);
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": on}]}}});
        let spec = json!({"containers": [container("main", SERVE)], "affinity": affinity, "automountServiceAccountToken": false,
                          "terminationGracePeriodSeconds": 2, "tolerations": [{"operator": "Exists"}]});
        let labels = json!({"app": "agent"});
        let set = serde_json::from_value(json!({"metadata": {"name": "agent"}, "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}}))?;
        let sets = Api::<DaemonSet>::namespaced(namespace.home.client.clone(), &namespace.name);
        sets.create(&PostParams::default(), &set).await?;
        let available = |set: Option<&DaemonSet>| {
            set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.number_available == Some(2))
        };
        let set = wait::until_one("a pod on each node", sets, "agent", available).await?.context("the DaemonSet")?;
        let status = set.status.context("a status")?;
        ensure!((status.desired_number_scheduled, status.number_misscheduled, status.number_ready) == (2, 0, 2), "{status:?}");

        let mut last = Vec::new();
        let agree = |pods: &BTreeMap<String, Pod>| {
            let on = |node: &str| {
                let pod = pods.values().find(|pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node))?;
                is_ready(pod).then(|| observable(&json!(pod), &names(pod, &namespace, None)))
            };
            let (Some(real), Some(on_virtual)) = (on(REAL_NODE), on(VIRTUAL_NODE)) else { return false };
            last = differences(&real, &on_virtual);
            last.is_empty()
        };
        match wait::until("the pods to agree", namespace.home_pods(), Config::default(), agree).await {
            Ok(_) => Ok(()),
            Err(error) => bail!("{error:#}:\n{}", compare::words(&last)),
        }
    })
    .await
}
