//! Partitions between two clusters: packets vanish in the switch, unanswered, also those of open connections.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::command::{inside, run_with_input};
use crate::plan::{API_PORT, Cluster, Plan};
use crate::state::{Home, read_json, write_json};

/// What a cut stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Only what goes to and from the two API servers.
    ControlPlane,
    /// Everything between the two clusters.
    All,
}

/// The cuts in force: at most one per pair of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cuts(BTreeMap<String, Scope>);

impl Cuts {
    pub fn load(home: &Home) -> Result<Self> {
        let path = home.cuts_path();
        if path.exists() { read_json(&path) } else { Ok(Self::default()) }
    }

    /// Puts the cuts into force, and only then remembers them.
    pub fn enforce(&self, home: &Home, plan: &Plan) -> Result<()> {
        run_with_input(inside(&home.switch_namespace(), "nft").args(["-f", "-"]), &self.rules(plan))?;
        write_json(&home.cuts_path(), self)
    }

    pub fn cut(&mut self, a: &str, b: &str, scope: Scope) -> Result<()> {
        ensure!(a != b, "a cluster cannot be cut from itself");
        self.0.insert(pair(a, b), scope);
        Ok(())
    }

    pub fn mend(&mut self, a: &str, b: &str) {
        self.0.remove(&pair(a, b));
    }

    /// Both names of each pair, and what is cut.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, Scope)> {
        self.0.iter().filter_map(|(pair, scope)| pair.split_once(' ').map(|(a, b)| (a, b, *scope)))
    }

    /// Address resolution passes, so that a cut is silence and not a prompt "no route to host".
    fn rules(&self, plan: &Plan) -> String {
        let mut rules = String::from(
            "table bridge cuts\ndelete table bridge cuts\ntable bridge cuts {\n\
             \tchain forward {\n\t\ttype filter hook forward priority 0; policy accept;\n",
        );
        for (a, b, scope) in self.iter() {
            let (Some(a), Some(b)) = (plan.cluster(a), plan.cluster(b)) else {
                continue;
            };
            for (from, to) in [(a, b), (b, a)] {
                let path = format!("iifname {} oifname {}", ports(from), ports(to));
                // Writing to a String cannot fail.
                let _ = match scope {
                    Scope::All => writeln!(rules, "\t\t{path} ether type {{ ip, ip6 }} counter drop"),
                    Scope::ControlPlane => writeln!(
                        rules,
                        "\t\t{path} ip daddr {} tcp dport {API_PORT} counter drop\n\
                         \t\t{path} ip saddr {} tcp sport {API_PORT} counter drop",
                        to.api_address, from.api_address
                    ),
                };
            }
        }
        rules.push_str("\t}\n}\n");
        rules
    }
}

fn pair(a: &str, b: &str) -> String {
    if a < b { format!("{a} {b}") } else { format!("{b} {a}") }
}

/// The switch's ports that lead to a cluster are named after its nodes.
fn ports(cluster: &Cluster) -> String {
    let names: Vec<String> = cluster.nodes.iter().map(|node| format!("\"{}\"", node.name)).collect();
    format!("{{ {} }}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    fn plan() -> Plan {
        Plan::new(0, &Spec { clusters: 3, nodes: 2, ..Spec::default() })
    }

    #[test]
    fn cutting_everything_hits_both_directions_and_no_third_cluster() {
        let mut cuts = Cuts::default();
        cuts.cut("home", "away", Scope::All).unwrap();
        let rules = cuts.rules(&plan());
        assert!(rules.contains(r#"iifname { "home-0", "home-1" } oifname { "away-0", "away-1" } ether type"#));
        assert!(rules.contains(r#"iifname { "away-0", "away-1" } oifname { "home-0", "home-1" } ether type"#));
        assert!(!rules.contains("third") && !rules.contains("host"), "{rules}");
    }

    #[test]
    fn cutting_control_planes_hits_requests_and_answers_of_both_servers() {
        let mut cuts = Cuts::default();
        cuts.cut("away", "home", Scope::ControlPlane).unwrap();
        let rules = cuts.rules(&plan());
        for server in ["10.100.0.16", "10.100.0.32"] {
            assert!(rules.contains(&format!("ip daddr {server} tcp dport 6443 counter drop")), "{rules}");
            assert!(rules.contains(&format!("ip saddr {server} tcp sport 6443 counter drop")), "{rules}");
        }
        assert!(!rules.contains("ether type"), "{rules}");
    }

    #[test]
    fn a_pair_has_one_cut_whatever_the_order() {
        let mut cuts = Cuts::default();
        cuts.cut("home", "away", Scope::ControlPlane).unwrap();
        cuts.cut("away", "home", Scope::All).unwrap();
        assert_eq!(cuts.iter().collect::<Vec<_>>(), [("away", "home", Scope::All)]);
        cuts.mend("home", "away");
        assert_eq!(cuts, Cuts::default());
        assert!(cuts.cut("home", "home", Scope::All).is_err());
    }
}
