//! Prefix translation for clusters that use the same CIDRs: each is reached under a range of its own. Pure.

use crate::plan::Cluster;

/// The table that a node of this cluster translates with, replacing an older one.
///
/// Pods that talk to anybody outside their cluster show their translated address; whoever talks to a
/// translated address reaches the pod behind it. Answers are translated back by connection tracking.
pub fn rules(cluster: &Cluster) -> String {
    let (own, seen, nodes) = (cluster.pod_cidr, cluster.reachable_pod_cidr, cluster.node_range);
    format!(
        "table ip testbed-nat\n\
         delete table ip testbed-nat\n\
         table ip testbed-nat {{\n\
         \tchain incoming {{\n\
         \t\ttype nat hook prerouting priority dstnat + 10;\n\
         \t\tdnat ip prefix to ip daddr map {{ {seen} : {own} }}\n\
         \t}}\n\
         \tchain outgoing {{\n\
         \t\ttype nat hook postrouting priority srcnat - 10;\n\
         \t\toifname \"eth0\" ip daddr != {{ {own}, {nodes} }} snat ip prefix to ip saddr map {{ {own} : {seen} }}\n\
         \t}}\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::spec::Spec;

    #[test]
    fn a_cluster_translates_its_own_range_both_ways() {
        let plan = Plan::new(0, &Spec { overlapping_cidrs: true, ..Spec::default() });
        let rules = rules(&plan.clusters[1]);
        assert!(rules.contains("dnat ip prefix to ip daddr map { 10.100.32.0/20 : 10.100.240.0/20 }"), "{rules}");
        assert!(rules.contains("snat ip prefix to ip saddr map { 10.100.240.0/20 : 10.100.32.0/20 }"), "{rules}");
        assert!(rules.contains("ip daddr != { 10.100.240.0/20, 10.100.0.32/28 }"), "{rules}");
    }
}
