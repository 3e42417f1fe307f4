//! The same on a real node of `home` and on the virtual node: side by side in one run, field by field.

mod cases;
mod compare;
mod deletion;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::PostParams;
use kube::runtime::watcher;
use serde_json::json;
use spillway_e2e::{Namespace, wait};

use self::compare::{Difference, Names, differences, observable};
use crate::alone;

/// What the kubelet's messages call a pod, at home and away.
fn names(pod: &Pod, namespace: &Namespace, remote: Option<&Pod>) -> Names {
    let uids = [Some(pod), remote].into_iter().flatten().filter_map(|pod| pod.uid());
    let mut names: Names = uids.map(|uid| (uid, "<uid>")).collect();
    // The twin's name begins with the namespace's.
    names.push((namespace.twin.clone(), "<namespace>"));
    names.push((namespace.name.clone(), "<namespace>"));
    names.push((pod.name_any(), "<pod>"));
    names
}

fn pod_differences(real: (&Pod, &Names), on_virtual: (&Pod, &Names)) -> Vec<Difference> {
    differences(&observable(&json!(real.0), real.1), &observable(&json!(on_virtual.0), on_virtual.1))
}

#[tokio::test]
async fn pods_of_every_kind_end_in_the_same_state_as_on_a_real_node() -> Result<()> {
    compare::print_allowed();
    // Alone: what a kubelet does in time depends on how busy the machine is, on both sides alike but not at once.
    alone(async |namespace| {
        let cases = cases::all();
        for case in &cases {
            for (side, on_virtual) in [("real", false), ("virtual", true)] {
                let name = format!("{}-{side}", case.name);
                let pod = json!({"metadata": {"name": name}, "spec": cases::placed(&case.spec, on_virtual)});
                namespace.home_pods().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
            }
        }
        // A message may name the remote pod; the observer knows its UID also when it is gone.
        let remote = spillway_e2e::Observer::of(namespace.away_pods());
        let mut same = BTreeSet::new();
        let mut last = BTreeMap::new();
        let agree = |pods: &BTreeMap<String, Pod>| {
            for case in cases.iter().filter(|case| !same.contains(case.name)).collect::<Vec<_>>() {
                let name = |side: &str| format!("{}-{side}", case.name);
                let (Some(real), Some(on_virtual)) = (pods.get(&name("real")), pods.get(&name("virtual"))) else {
                    continue;
                };
                let away = remote.last(&name("virtual"));
                let (real_names, virtual_names) =
                    (names(real, &namespace, None), names(on_virtual, &namespace, away.as_ref()));
                let found = pod_differences((real, &real_names), (on_virtual, &virtual_names));
                if (case.settled)(real) && (case.settled)(on_virtual) && found.is_empty() {
                    same.insert(case.name);
                    last.remove(case.name);
                } else {
                    last.insert(case.name, (found, (case.settled)(real), (case.settled)(on_virtual)));
                }
            }
            same.len() == cases.len()
        };
        let waited = wait::until("the pairs to agree", namespace.home_pods(), watcher::Config::default(), agree).await;
        if waited.is_err() {
            let lines = last.iter().map(|(case, (found, real, on_virtual))| {
                format!("{case} (settled: real {real}, virtual {on_virtual}):\n{}", compare::words(found))
            });
            bail!("these differ:\n{}", lines.collect::<Vec<_>>().join("\n"));
        }
        Ok(())
    })
    .await
}
