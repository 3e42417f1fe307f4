//! The network of a testbed: a switch in a namespace of its own, a link to the host and one to each node.
//!
//! Nothing can leave: a node's default route is `unreachable`, and the host routes only the testbed's own
//! block. The switch being a namespace, the host's firewall and bridge settings have no say in it.

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use std::fmt::Write;
use std::path::Path;

use crate::command::{command, inside, run, run_with_input, succeeds};
use crate::plan::{Cluster, Node, Plan};
use crate::state::Home;
use crate::{namespaces, nat};

/// Loads what the kernel does not load by itself when it is first used; many kernels have it built in.
pub fn load_modules() {
    for module in ["br_netfilter", "overlay"] {
        // Whether it is there shows when it is needed.
        succeeds(command("modprobe").args(["-q", module]));
    }
}

/// Makes what is missing of the whole network.
pub fn ensure(home: &Home, plan: &Plan) -> Result<()> {
    namespaces::prepare(home)?;
    let switch = home.switch_namespace();
    namespaces::ensure_network(&switch)?;
    ensure_switch(&switch)?;
    ensure_host_link(home, plan)?;
    for (cluster, node) in plan.nodes() {
        ensure_node(home, plan, cluster, node)
            .with_context(|| format!("cannot connect node {} to the testbed's network", node.name))?;
    }
    run_with_input(command("ip").args(["-batch", "-"]), &host_routes(plan))?;
    Ok(())
}

/// Removes what lies on the host itself; the rest goes with its namespaces.
pub fn remove_from_host(plan: &Plan) -> Result<()> {
    let link = plan.host_link();
    if link_exists(command("ip"), &link) {
        run(command("ip").args(["link", "delete", &link]))?;
    }
    let block = plan.block().to_string();
    let unreachable = ["route", "delete", "unreachable", &block];
    if run(command("ip").args(["route", "show", "type", "unreachable"]))?.contains(&block) {
        run(command("ip").args(unreachable))?;
    }
    Ok(())
}

/// The destinations that the host already routes somewhere, to keep away from them.
pub fn host_routes_in_use() -> Result<Vec<Ipv4Net>> {
    let routes = run(command("ip").args(["-4", "route", "show", "table", "all"]))?;
    Ok(parse_routes(&routes))
}

fn parse_routes(text: &str) -> Vec<Ipv4Net> {
    let destination = |line: &str| {
        line.split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
            .and_then(|word| word.parse().ok().or_else(|| Ipv4Net::new(word.parse().ok()?, 32).ok()))
    };
    text.lines().filter(|line| !line.starts_with("default")).filter_map(destination).collect()
}

fn ensure_switch(switch: &Path) -> Result<()> {
    if !link_exists(inside(switch, "ip"), "br0") {
        run(inside(switch, "ip").args(["link", "add", "br0", "type", "bridge", "mcast_snooping", "0"]))?;
    }
    run(inside(switch, "ip").args(["link", "set", "br0", "up"]))?;
    // Frames are only switched here; filtering is the business of the bridge family's own table.
    set_sysctls(switch, &[("net/bridge/bridge-nf-call-iptables", "0")])
}

fn ensure_host_link(home: &Home, plan: &Plan) -> Result<()> {
    let (switch, link) = (home.switch_namespace(), plan.host_link());
    if !link_exists(inside(&switch, "ip"), "host") {
        let peer = ["type", "veth", "peer", "name", "host", "netns"];
        run(command("ip").args(["link", "add", &link]).args(peer).arg(&switch))?;
    }
    run(inside(&switch, "ip").args(["link", "set", "host", "master", "br0", "up"]))?;
    let address = format!("{}/24", plan.host_address());
    run(command("ip").args(["address", "replace", &address, "dev", &link]))?;
    run(command("ip").args(["link", "set", &link, "up"]))?;
    Ok(())
}

fn ensure_node(home: &Home, plan: &Plan, cluster: &Cluster, node: &Node) -> Result<()> {
    let (switch, namespace) = (home.switch_namespace(), home.network_namespace(&node.name));
    namespaces::ensure_network(&namespace)?;
    if !link_exists(inside(&namespace, "ip"), "eth0") {
        let peer = ["link", "add", "eth0", "type", "veth", "peer", "name", &node.name, "netns"];
        run(inside(&namespace, "ip").args(peer).arg(&switch))?;
    }
    run(inside(&switch, "ip").args(["link", "set", &node.name, "master", "br0", "up"]))?;
    set_sysctls(
        &namespace,
        &[
            ("net/ipv4/ip_forward", "1"),
            ("net/ipv4/conf/all/rp_filter", "0"),
            // Pods behind one bridge answer each other directly; a Service's translation must still see it.
            ("net/bridge/bridge-nf-call-iptables", "1"),
        ],
    )?;
    run_with_input(inside(&namespace, "ip").args(["-batch", "-"]), &node_setup(plan, cluster, node))?;
    if plan.overlapping {
        run_with_input(inside(&namespace, "nft").args(["-f", "-"]), &nat::rules(cluster))?;
    }
    Ok(())
}

/// `ip` commands that give a node its address and its routes; run again they change nothing.
fn node_setup(plan: &Plan, cluster: &Cluster, node: &Node) -> String {
    let mut lines = format!(
        "link set lo up\naddress replace {}/24 dev eth0\nlink set eth0 up\n\
         route replace unreachable default\nroute replace {} dev eth0 src {}\n",
        node.address, cluster.service_cidr, node.address
    );
    for (other_cluster, other) in plan.nodes() {
        let same_cluster = other_cluster.index == cluster.index;
        if same_cluster && other.index == node.index {
            continue;
        }
        let pods = if same_cluster { other.pod_cidr } else { other.reachable_pod_cidr };
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "route replace {pods} via {}", other.address);
    }
    lines
}

fn host_routes(plan: &Plan) -> String {
    let mut lines = format!("route replace unreachable {}\n", plan.block());
    for (_, node) in plan.nodes() {
        let _ = writeln!(lines, "route replace {} via {}", node.reachable_pod_cidr, node.address);
    }
    lines
}

fn link_exists(mut ip: std::process::Command, link: &str) -> bool {
    succeeds(ip.args(["link", "show", "dev", link]))
}

fn set_sysctls(namespace: &Path, settings: &[(&str, &str)]) -> Result<()> {
    let script = settings.iter().fold(String::new(), |mut script, (key, value)| {
        // Absent where the kernel lacks the module, e.g. bridge netfilter.
        let _ = writeln!(script, "[ ! -e /proc/sys/{key} ] || echo {value} > /proc/sys/{key} || exit 1");
        script
    });
    run(inside(namespace, "sh").args(["-c", &script]))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    #[test]
    fn a_node_routes_to_its_peers_pods_and_nowhere_else() {
        let plan = Plan::new(0, &Spec { nodes: 2, ..Spec::default() });
        let setup = node_setup(&plan, &plan.clusters[0], &plan.clusters[0].nodes[0]);
        assert!(setup.contains("route replace unreachable default"));
        assert!(setup.contains("route replace 10.100.17.0/24 via 10.100.0.17"), "its own second node:\n{setup}");
        assert!(setup.contains("route replace 10.100.32.0/24 via 10.100.0.32"), "the peer's first:\n{setup}");
        assert!(!setup.contains("10.100.16.0/24"), "its own pods are local:\n{setup}");
    }

    #[test]
    fn overlapping_peers_are_reached_under_their_translated_range() {
        let plan = Plan::new(0, &Spec { nodes: 2, overlapping_cidrs: true, ..Spec::default() });
        let setup = node_setup(&plan, &plan.clusters[0], &plan.clusters[0].nodes[0]);
        assert!(setup.contains("route replace 10.100.241.0/24 via 10.100.0.17"), "{setup}");
        assert!(setup.contains("route replace 10.100.32.0/24 via 10.100.0.32"), "{setup}");
    }

    #[test]
    fn routes_in_use_are_read_whatever_their_type() {
        let routes = parse_routes(
            "default via 192.0.2.1 dev eth0\nunreachable 10.100.0.0/16\n10.101.0.0/24 dev x\nlocal 10.102.0.1 dev lo\n",
        );
        let shown: Vec<String> = routes.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.100.0.0/16", "10.101.0.0/24", "10.102.0.1/32"]);
    }
}
