//! Least privilege, measured: what the operators did during the end-to-end tests (the API servers' audit logs tell)
//! against what their roles allow. Runs after the tests of `e2e`, on the same clusters.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use kube::api::Api;
use serde_json::Value;
use spillway_e2e::{Side, install};
use spillway_testbed::Testbed;

/// A verb on a resource, as in "patch offloading.liqo.io/shadowpods/status".
type Right = String;

/// Needed, but no request of its own: the authoriser is asked for it when a server-side apply makes an object.
const BEHIND_APPLY: &[(&str, &str)] = &[
    ("spillway-peering", "create apps/deployments"),
    ("spillway-peering", "create serviceaccounts"),
    ("spillway-peering", "create rbac.authorization.k8s.io/rolebindings"),
    ("spillway-peering", "create rbac.authorization.k8s.io/clusterrolebindings"),
];

struct Operator {
    cluster: &'static str,
    /// The service accounts begin with this.
    account: &'static str,
    cluster_roles: &'static [&'static str],
    /// In the namespace of the installation.
    role: Option<&'static str>,
}

const OPERATORS: &[Operator] = &[
    Operator {
        cluster: "home",
        account: "spillway-peering",
        cluster_roles: &["spillway-peering", "spillway-peering-consumer"],
        role: Some("spillway-peering"),
    },
    Operator {
        cluster: "home",
        account: "vk-",
        cluster_roles: &[
            "spillway-virtual-kubelet",
            "spillway-virtual-kubelet-tenant",
            "spillway-virtual-kubelet-node-lease",
        ],
        role: None,
    },
    Operator {
        cluster: "away",
        account: "spillway-peering",
        cluster_roles: &["spillway-peering"],
        role: Some("spillway-peering"),
    },
    Operator {
        cluster: "away",
        account: "spillway-shadow-pod",
        cluster_roles: &["spillway-shadow-pod"],
        role: Some("spillway-shadow-pod"),
    },
];

fn right(verb: &str, group: &str, resource: &str) -> Right {
    if group.is_empty() { format!("{verb} {resource}") } else { format!("{verb} {group}/{resource}") }
}

fn granted(rules: &[PolicyRule]) -> BTreeSet<Right> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                all.extend(rule.verbs.iter().map(|verb| right(verb, group, resource)));
            }
        }
    }
    // `bind` is asked of the authoriser while a binding is written; it is no request of its own.
    all.retain(|right| !right.starts_with("bind "));
    all
}

/// What the account did, and what it was refused. An API server that was just killed refuses what is allowed until it
/// has read its roles: a refusal of what the same account may at other times, in the same namespace, is none.
fn used(testbed: &Testbed, operator: &Operator) -> Result<(BTreeSet<Right>, Vec<String>)> {
    let (mut used, mut allowed, mut refused) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for log in testbed.logs(&format!("{}/kube-apiserver", operator.cluster))? {
        let text = std::fs::read(&log).with_context(|| format!("no log {}", log.display()))?;
        for line in String::from_utf8_lossy(&text).lines().filter(|line| line.starts_with(r#"{"kind":"Event""#)) {
            let Ok(event) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let user = event["user"]["username"].as_str().unwrap_or_default();
            let account = user.rsplit(':').next().unwrap_or_default();
            if !user.starts_with("system:serviceaccount:") || !account.starts_with(operator.account) {
                continue;
            }
            let text = |field: &str| event["objectRef"][field].as_str().unwrap_or_default().to_owned();
            let (group, mut resource, sub) = (text("apiGroup"), text("resource"), text("subresource"));
            if resource.is_empty() {
                continue; // not about an object: /readyz, /version
            }
            if !sub.is_empty() {
                resource = format!("{resource}/{sub}");
            }
            let done = right(event["verb"].as_str().unwrap_or_default(), &group, &resource);
            let request = (user.to_owned(), done.clone(), text("namespace"));
            if event["annotations"]["authorization.k8s.io/decision"] == "forbid" {
                refused.push((request, event["responseStatus"]["message"].to_string()));
            } else {
                allowed.insert(request);
            }
            used.insert(done);
        }
    }
    refused.retain(|(request, _)| !allowed.contains(request));
    let complaints = refused.into_iter().map(|((user, done, _), why)| format!("{user}: {done}: {why}"));
    Ok((used, complaints.collect()))
}

#[tokio::test]
async fn no_operator_has_a_right_that_it_does_not_use_or_lacks_one_that_it_needs() -> Result<()> {
    let testbed = Testbed::open("e2e").context("the tests of `e2e` run first")?;
    let mut complaints = Vec::new();
    for operator in OPERATORS {
        let side = Side::connect(&testbed, operator.cluster).await?;
        let mut rules = Vec::new();
        for role in operator.cluster_roles {
            rules.extend(Api::<ClusterRole>::all(side.client.clone()).get(role).await?.rules.unwrap_or_default());
        }
        if let Some(role) = operator.role {
            rules.extend(
                Api::<Role>::namespaced(side.client.clone(), install::NAMESPACE)
                    .get(role)
                    .await?
                    .rules
                    .unwrap_or_default(),
            );
        }
        let (used, refused) = used(&testbed, operator)?;
        ensure!(!used.is_empty(), "the audit log of {} knows nothing of {}", operator.cluster, operator.account);
        complaints.extend(refused);
        let behind = |right: &str| BEHIND_APPLY.contains(&(operator.account, right));
        for unused in granted(&rules).difference(&used).filter(|right| !behind(right)) {
            complaints.push(format!("{} on {} may {unused}, and never did", operator.account, operator.cluster));
        }
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}
