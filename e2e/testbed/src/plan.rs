//! The address plan: every name and address of a testbed follows from its slot. Pure; touches nothing.
//!
//! A testbed owns `10.(100+slot).0.0/16`: `.0.0/24` links the nodes and the host (`.1`), pods live in a /20
//! per cluster from `.16.0` on, services in a /20 per cluster from `.128.0` on, and `.240.0/20` is the pod
//! CIDR that all clusters share when CIDRs overlap (the /20 of its own is then what the peers see).

use ipnet::Ipv4Net;
use serde::Serialize;
use std::net::Ipv4Addr;

use crate::spec::Spec;

/// Names by index; their number bounds the clusters of a testbed.
pub const CLUSTER_NAMES: [&str; 7] = ["home", "away", "third", "fourth", "fifth", "sixth", "seventh"];
/// Each node has one /24 of its cluster's /20 and one address of its cluster's /28.
pub const MAX_NODES: u8 = 15;
/// How many testbeds fit next to one another.
pub const SLOTS: u8 = 50;
/// Where every API server listens.
pub const API_PORT: u16 = 6443;

/// One testbed's names and addresses.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    pub slot: u8,
    pub overlapping: bool,
    pub clusters: Vec<Cluster>,
}

/// One cluster: where it is reached and which ranges it uses.
#[derive(Clone, Debug, Serialize)]
pub struct Cluster {
    pub index: u8,
    pub name: String,
    /// Where the API server listens; also the address of the first node.
    pub api_address: Ipv4Addr,
    /// What pods see inside the cluster.
    pub pod_cidr: Ipv4Net,
    /// Under which range the peers and the host reach those pods; differs only when CIDRs overlap.
    pub reachable_pod_cidr: Ipv4Net,
    pub service_cidr: Ipv4Net,
    /// The addresses of all its nodes.
    pub node_range: Ipv4Net,
    /// Addresses that kwok hands to its pods; nothing is ever routed there.
    pub kwok_pod_cidr: Ipv4Net,
    pub nodes: Vec<Node>,
}

/// One node: a network namespace with a link to the testbed's switch.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    pub index: u8,
    pub name: String,
    pub address: Ipv4Addr,
    pub pod_cidr: Ipv4Net,
    pub reachable_pod_cidr: Ipv4Net,
}

impl Plan {
    pub fn new(slot: u8, spec: &Spec) -> Self {
        let block = block_of(slot);
        let clusters = CLUSTER_NAMES
            .iter()
            .zip(0u8..spec.clusters)
            .map(|(name, index)| Cluster::new(block, name, index, spec))
            .collect();
        Self { slot, overlapping: spec.overlapping_cidrs, clusters }
    }

    /// The range that this testbed and no other uses.
    pub fn block(&self) -> Ipv4Net {
        block_of(self.slot)
    }

    /// The host's own address on the link.
    pub fn host_address(&self) -> Ipv4Addr {
        within(self.block(), 1)
    }

    /// The only link that a testbed adds to the host.
    pub fn host_link(&self) -> String {
        format!("swtb{}", self.slot)
    }

    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name)
    }

    pub fn nodes(&self) -> impl Iterator<Item = (&Cluster, &Node)> {
        self.clusters.iter().flat_map(|cluster| cluster.nodes.iter().map(move |node| (cluster, node)))
    }
}

impl Cluster {
    fn new(block: Ipv4Net, name: &str, index: u8, spec: &Spec) -> Self {
        let step = 16 * u32::from(index);
        let reachable = subnet(block, (16 + step) << 8, 20);
        let pods = if spec.overlapping_cidrs { subnet(block, 240 << 8, 20) } else { reachable };
        let services = if spec.overlapping_cidrs { 128 << 8 } else { (128 + step) << 8 };
        let node_range = subnet(block, 16 + step, 28);
        let nodes = (0..spec.nodes)
            .map(|node| Node {
                index: node,
                name: format!("{name}-{node}"),
                address: within(node_range, u32::from(node)),
                pod_cidr: subnet(pods, u32::from(node) << 8, 24),
                reachable_pod_cidr: subnet(reachable, u32::from(node) << 8, 24),
            })
            .collect();
        Self {
            index,
            name: name.to_owned(),
            api_address: within(node_range, 0),
            pod_cidr: pods,
            reachable_pod_cidr: reachable,
            service_cidr: subnet(block, services, 20),
            node_range,
            kwok_pod_cidr: net(Ipv4Addr::new(100, 64 + index, 0, 0), 16),
            nodes,
        }
    }

    pub fn api_url(&self) -> String {
        format!("https://{}:{API_PORT}", self.api_address)
    }

    /// The address of the `kubernetes` Service.
    pub fn api_service_address(&self) -> Ipv4Addr {
        within(self.service_cidr, 1)
    }

    /// The usual address of the `kube-dns` Service.
    pub fn dns_address(&self) -> Ipv4Addr {
        within(self.service_cidr, 10)
    }
}

/// The range of a slot.
pub fn block_of(slot: u8) -> Ipv4Net {
    net(Ipv4Addr::new(10, 100 + slot, 0, 0), 16)
}

fn within(range: Ipv4Net, offset: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(range.network()) + offset)
}

fn subnet(range: Ipv4Net, offset: u32, prefix: u8) -> Ipv4Net {
    net(within(range, offset), prefix)
}

fn net(address: Ipv4Addr, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(address, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(overlapping_cidrs: bool) -> Plan {
        Plan::new(SLOTS - 1, &Spec { clusters: 7, nodes: MAX_NODES, overlapping_cidrs, ..Spec::default() })
    }

    #[test]
    fn addresses_of_the_first_testbed() {
        let plan = Plan::new(0, &Spec::default());
        let away = plan.cluster("away").unwrap();
        assert_eq!(away.api_address.to_string(), "10.100.0.32");
        assert_eq!(away.pod_cidr.to_string(), "10.100.32.0/20");
        assert_eq!(away.service_cidr.to_string(), "10.100.144.0/20");
        assert_eq!(away.dns_address().to_string(), "10.100.144.10");
        assert_eq!(away.nodes[0].pod_cidr.to_string(), "10.100.32.0/24");
        assert_eq!(plan.host_address().to_string(), "10.100.0.1");
    }

    #[test]
    fn everything_lies_in_the_block_and_nothing_overlaps() {
        let plan = full(false);
        let mut ranges: Vec<Ipv4Net> = vec![net(plan.host_address(), 32)];
        for cluster in &plan.clusters {
            ranges.extend([cluster.pod_cidr, cluster.service_cidr, cluster.node_range]);
            assert!(cluster.nodes.iter().all(|node| cluster.node_range.contains(&node.address)));
            assert!(cluster.nodes.iter().all(|node| cluster.pod_cidr.contains(&node.pod_cidr)));
        }
        for (position, range) in ranges.iter().enumerate() {
            assert!(plan.block().contains(range), "{range} lies outside");
            for other in &ranges[position + 1..] {
                assert!(!range.contains(other) && !other.contains(range), "{range} overlaps {other}");
            }
        }
    }

    #[test]
    fn overlapping_clusters_share_their_cidrs_and_are_reached_under_their_own() {
        let plan = full(true);
        let first = &plan.clusters[0];
        for cluster in &plan.clusters {
            assert_eq!(cluster.pod_cidr, first.pod_cidr);
            assert_eq!(cluster.service_cidr, first.service_cidr);
            assert!(!cluster.pod_cidr.contains(&cluster.reachable_pod_cidr));
        }
        assert_ne!(plan.clusters[1].reachable_pod_cidr, first.reachable_pod_cidr);
    }

    #[test]
    fn every_slot_is_a_valid_block() {
        for slot in 0..SLOTS {
            assert_eq!(block_of(slot).prefix_len(), 16);
        }
    }
}
