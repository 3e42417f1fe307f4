//! Faults of every kind on real kubelets. Tests marked `soak` take long; `make soak` runs them.

mod absence;
mod cycle;
mod expiry;
mod kills;
mod long_cut;
mod lost_node;
mod namespaces;
mod refusals;
mod restart;
mod short_cut;
mod silence;
mod unavailable;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Toleration};
use spillway_e2e::Namespace;
use spillway_testbed::Scope;

use crate::pods::{is_ready, pod};
use crate::testbed;

/// How soon all must be well again after the end of a fault: generous, the figures are printed.
const CONVERGENCE: Duration = Duration::from_secs(60);

/// Cuts everything between the clusters while `during` runs, and at least so long; gives the moment of the mending.
async fn cut_while(at_least: Duration, during: impl Future<Output = Result<()>>) -> Result<Instant> {
    testbed().cut("home", "away", Scope::All)?;
    let end = tokio::time::Instant::now() + at_least;
    let outcome = during.await;
    if outcome.is_ok() {
        tokio::time::sleep_until(end).await;
    }
    let mended = Instant::now();
    testbed().mend("home", "away")?;
    outcome.map(|()| mended)
}

/// Tells a remote pod that waits for this file to end by itself.
fn end(namespace: &Namespace, pod: &str) -> Result<()> {
    let mut exec = testbed().kubectl("away")?;
    spillway_e2e::install::succeed(exec.args(["exec", "-n", &namespace.twin, pod, "--", "touch", "/tmp/end"]))
}

/// Prints and checks how long after a fault something had come right.
fn converged(what: &str, since: Instant) -> Result<()> {
    let took = since.elapsed();
    println!("{took:.1?} after the mending: {what}");
    ensure!(took < CONVERGENCE, "{what} only {took:?} after the mending");
    Ok(())
}

/// Pods that were made unready by the node controller and ready again while nobody could know.
fn stale(seen: &[spillway_e2e::observe::Seen], from: Instant, to: Instant) -> Vec<String> {
    let mut unready = std::collections::BTreeSet::new();
    let mut stale = Vec::new();
    for seen in seen.iter().filter(|seen| seen.at > from && seen.at < to && !seen.gone) {
        let uid = seen.pod.metadata.uid.clone().unwrap_or_default();
        if !is_ready(&seen.pod) {
            unready.insert(uid);
        } else if unready.contains(&uid) {
            stale.push(seen.pod.metadata.name.clone().unwrap_or_default());
        }
    }
    stale
}

/// A pod that no state of its node drives away, nor keeps away.
fn patient(name: &str, command: &str) -> Pod {
    let mut pod = pod(name, command);
    if let Some(spec) = &mut pod.spec {
        spec.tolerations = Some(vec![Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() }]);
    }
    pod
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.into_iter().flatten().map(|status| status.restart_count).sum()
}
