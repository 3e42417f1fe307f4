//! Addresses of the remote cluster as this one knows them, as the Configuration of the peer says. Pure.

use std::net::IpAddr;

use ipnet::IpNet;
use spillway_api::networking::{ClusterConfig, Configuration};

/// Ranges of the remote cluster, each with the range under which it is reached from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(Vec<(IpNet, IpNet)>);

impl Addresses {
    /// Addresses that pass unchanged.
    pub const NONE: Self = Self(Vec::new());

    /// What a Configuration says; without one addresses pass unchanged.
    pub fn of(configuration: Option<&Configuration>) -> Self {
        let cidr = |config: Option<&ClusterConfig>| config.and_then(|config| config.cidr.clone()).unwrap_or_default();
        let there = cidr(configuration.and_then(|configuration| configuration.spec.remote.as_ref()));
        let status = configuration.and_then(|configuration| configuration.status.as_ref());
        let here = cidr(status.and_then(|status| status.remote.as_ref()));
        // The n-th range of one side stands for the n-th of the other.
        let pairs = there.pod.iter().zip(&here.pod).chain(there.external.iter().zip(&here.external));
        let pairs = pairs.filter_map(|(there, here)| {
            let (there, here): (IpNet, IpNet) = (there.parse().ok()?, here.parse().ok()?);
            // A range that is reached under one of another size can't be told address by address.
            let alike = there.prefix_len() == here.prefix_len() && there.addr().is_ipv4() == here.addr().is_ipv4();
            alike.then_some((there, here))
        });
        Self(pairs.collect())
    }

    /// The same host in the range under which it is reached from here.
    pub fn local(&self, remote: &str) -> String {
        let Ok(address) = remote.parse::<IpAddr>() else { return remote.to_owned() };
        match self.0.iter().find(|(there, _)| there.contains(&address)) {
            Some((_, here)) => moved(address, here).to_string(),
            None => remote.to_owned(),
        }
    }
}

fn moved(address: IpAddr, range: &IpNet) -> IpAddr {
    match (address, range) {
        (IpAddr::V4(address), IpNet::V4(range)) => {
            let host = u32::from(address) & u32::from(range.hostmask());
            IpAddr::V4((u32::from(range.network()) | host).into())
        }
        (IpAddr::V6(address), IpNet::V6(range)) => {
            let host = u128::from(address) & u128::from(range.hostmask());
            IpAddr::V6((u128::from(range.network()) | host).into())
        }
        (address, _) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn addresses(there: Value, here: Value) -> Addresses {
        let configuration = json!({
            "apiVersion": "networking.liqo.io/v1beta1", "kind": "Configuration", "metadata": {"name": "milan"},
            "spec": {"remote": {"cidr": there}}, "status": {"remote": {"cidr": here}},
        });
        Addresses::of(Some(&serde_json::from_value(configuration).unwrap()))
    }

    #[rstest]
    #[case("10.244.3.7", "10.71.3.7")]
    #[case("10.70.0.9", "10.72.0.9")]
    #[case("fd00::1:3", "fd71::1:3")]
    #[case("192.168.0.1", "192.168.0.1")]
    #[case("no address", "no address")]
    fn hosts_move_with_their_range(#[case] remote: &str, #[case] local: &str) {
        let addresses = addresses(
            json!({"pod": ["10.244.0.0/16", "fd00::/64"], "external": ["10.70.0.0/16"]}),
            json!({"pod": ["10.71.0.0/16", "fd71::/64"], "external": ["10.72.0.0/16"]}),
        );
        assert_eq!(addresses.local(remote), local);
    }

    #[test]
    fn ranges_that_do_not_match_change_nothing() {
        for here in [json!({}), json!({"pod": ["10.71.0.0/24"]}), json!({"pod": ["fd71::/16"]}), json!({"pod": ["x"]})]
        {
            let addresses = addresses(json!({"pod": ["10.244.0.0/16"]}), here);
            assert_eq!(addresses.local("10.244.3.7"), "10.244.3.7");
        }
        assert_eq!(Addresses::of(None).local("10.244.3.7"), "10.244.3.7");
    }

    #[test]
    fn an_external_range_never_stands_for_a_pod_range() {
        let addresses = addresses(
            json!({"pod": ["10.244.0.0/16", "10.245.0.0/16"], "external": ["10.70.0.0/16"]}),
            json!({"pod": ["10.71.0.0/16"], "external": ["10.72.0.0/16"]}),
        );
        assert_eq!(addresses.local("10.245.0.1"), "10.245.0.1");
        assert_eq!(addresses.local("10.70.0.1"), "10.72.0.1");
    }
}
