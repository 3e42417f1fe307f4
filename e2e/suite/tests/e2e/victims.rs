//! What a test may kill, and how it comes back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::runtime::watcher;
use spillway_e2e::install::NAMESPACE;
use spillway_e2e::{Namespace, Side, persist, process, wait};

use crate::pods::is_ready;
use crate::{VIRTUAL_NODE, testbed};

/// An operator and how to find its pod.
pub struct Operator {
    side: Side,
    namespace: String,
    selector: String,
    program: &'static str,
}

impl Operator {
    async fn ready_pod(&self) -> Result<Pod> {
        let config = watcher::Config::default().labels(&self.selector);
        let what = format!("a ready {}", self.program);
        let pods = wait::until(&what, self.pods(), config, |pods| pods.values().any(living)).await?;
        pods.into_values().find(living).context("a pod")
    }

    /// Kills it once, by SIGKILL or by force-deleting its pod, and waits until it is back.
    pub async fn kill(&self, by_signal: bool) -> Result<()> {
        let pod = self.ready_pod().await?;
        let (name, uid) = (pod.name_any(), pod.uid().context("a UID")?);
        if by_signal {
            let restarts = restarts(&pod);
            self.signal(&pod, process::kill)?;
            let back = |pod: Option<&Pod>| pod.is_some_and(|pod| living(pod) && restarts < self::restarts(pod));
            wait::until_one("the container to be back", self.pods(), &name, back).await?;
        } else {
            persist::delete(&self.pods(), &name, &DeleteParams::default().grace_period(0)).await?;
            let config = watcher::Config::default().labels(&self.selector);
            let replaced =
                |pods: &BTreeMap<String, Pod>| pods.values().any(|pod| living(pod) && pod.uid().as_ref() != Some(&uid));
            wait::until("another pod in its place", self.pods(), config, replaced).await?;
        }
        Ok(())
    }

    /// SIGKILL, and no wait for its return.
    pub async fn vanish(&self) -> Result<()> {
        self.signal(&self.ready_pod().await?, process::kill)
    }

    /// SIGSTOP: from here on it sees and does nothing, until it is killed.
    pub async fn freeze(&self) -> Result<()> {
        self.signal(&self.ready_pod().await?, process::freeze)
    }

    fn signal(&self, pod: &Pod, signal: fn(i32) -> Result<()>) -> Result<()> {
        let processes = process::of_pod(&pod.uid().context("a UID")?, self.program)?;
        ensure!(!processes.is_empty(), "no process of {}", pod.name_any());
        processes.into_iter().try_for_each(signal)
    }

    /// By SIGKILL, unless the kubelet would by now wait long before it starts the container again.
    async fn crash(&self) -> Result<()> {
        let by_signal = restarts(&self.ready_pod().await?) < 2;
        self.kill(by_signal).await
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.side.client.clone(), &self.namespace)
    }
}

fn living(pod: &Pod) -> bool {
    is_ready(pod) && pod.metadata.deletion_timestamp.is_none()
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).sum()
}

fn operator(side: &Side, namespace: &str, selector: &str, program: &'static str) -> Operator {
    Operator { side: side.clone(), namespace: namespace.to_owned(), selector: selector.to_owned(), program }
}

/// That of the shared virtual node.
pub fn virtual_kubelet(namespace: &Namespace) -> Operator {
    virtual_kubelet_of(namespace, VIRTUAL_NODE)
}

pub fn virtual_kubelet_of(namespace: &Namespace, node: &str) -> Operator {
    let selector = format!("liqo.io/virtual-node={node}");
    operator(&namespace.home, &namespace.peering.tenant_namespace, &selector, "virtual-kubelet")
}

pub fn shadow_pod(namespace: &Namespace) -> Operator {
    operator(&namespace.away, NAMESPACE, "app.kubernetes.io/name=shadow-pod", "shadow-pod")
}

pub fn operators(namespace: &Namespace) -> Vec<Operator> {
    vec![
        virtual_kubelet(namespace),
        operator(&namespace.home, NAMESPACE, "app.kubernetes.io/name=controller-manager", "peering"),
        shadow_pod(namespace),
    ]
}

/// An operator, or a part of Kubernetes itself.
pub enum Victim {
    Operator(Box<Operator>),
    /// As the testbed names it: `home/etcd`.
    Component(String),
}

impl Victim {
    pub fn name(&self) -> &str {
        match self {
            Self::Operator(operator) => operator.program,
            Self::Component(component) => component,
        }
    }

    /// SIGKILL; returns once it serves again.
    pub async fn kill(&self) -> Result<()> {
        match self {
            Self::Operator(operator) => operator.crash().await,
            Self::Component(component) => restart(component).await,
        }
    }
}

/// SIGKILL of a component of the testbed, and its start.
pub async fn restart(component: &str) -> Result<()> {
    let component = component.to_owned();
    let work = move || testbed().kill(&component).and_then(|()| testbed().start(&component));
    tokio::task::spawn_blocking(work).await?
}

/// The operators, and on both sides the API server, etcd and the kubelet.
pub fn all(namespace: &Namespace) -> Vec<Victim> {
    let components = ["home", "away"].into_iter().flat_map(|cluster| {
        ["kube-apiserver", "etcd", "kubelet"].map(|component| Victim::Component(format!("{cluster}/{component}")))
    });
    operators(namespace).into_iter().map(|operator| Victim::Operator(Box::new(operator))).chain(components).collect()
}
