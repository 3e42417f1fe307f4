//! The flags of virtual-kubelet. Names that Liqo's users know are kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};
use spillway_operator::args::CommonArgs;

/// Shows a remote cluster as a Node of this one, and runs the pods that are bound to it over there.
#[derive(Clone, Debug, Parser)]
#[command(name = "virtual-kubelet", version)]
pub struct Args {
    #[command(flatten)]
    pub common: CommonArgs,

    /// The name of the VirtualNode to serve, and of the Node
    #[arg(long, env = "VIRTUALNODE_NAME")]
    pub nodename: String,

    /// The namespace of the VirtualNode and of the NamespaceMap
    #[arg(long, env = "POD_NAMESPACE")]
    pub tenant_namespace: String,

    /// The ID of this cluster
    #[arg(long)]
    pub home_cluster_id: String,

    /// The ID of the remote cluster
    #[arg(long)]
    pub foreign_cluster_id: String,

    /// The kubeconfig file of the remote cluster
    #[arg(long)]
    pub foreign_kubeconfig: PathBuf,

    /// The address that the Node shows as its own: that of this pod
    #[arg(long, env = "POD_IP")]
    pub node_ip: Option<String>,

    /// Whether to make a Node at all
    #[arg(long, default_value_t = true, action = ArgAction::Set)]
    pub create_node: bool,

    /// Labels of the Node besides those of the VirtualNode, as KEY=VALUE,…
    #[arg(long, value_parser = parse_map, default_value = "")]
    pub node_extra_labels: Map,

    /// Annotations of the Node besides those of the VirtualNode, as KEY=VALUE,…
    #[arg(long, value_parser = parse_map, default_value = "")]
    pub node_extra_annotations: Map,

    /// Keys of labels that are not passed on to the remote cluster, besides those of the VirtualNode
    #[arg(long, value_delimiter = ',')]
    pub labels_not_reflected: Vec<String>,

    /// Keys of annotations that are not passed on to the remote cluster, besides those of the VirtualNode
    #[arg(long, value_delimiter = ',')]
    pub annotations_not_reflected: Vec<String>,

    /// How long the Node counts as alive without a heartbeat
    #[arg(long, value_parser = parse_duration, default_value = "40s")]
    pub node_lease_duration: Duration,

    /// How often the remote API server is asked whether it is there
    #[arg(long, value_parser = parse_duration, default_value = "5s")]
    pub node_ping_interval: Duration,

    /// How long it has to answer
    #[arg(long, value_parser = parse_duration, default_value = "3s")]
    pub node_ping_timeout: Duration,

    /// How long it may be away before the Node is NotReady; pods' states are taken for outdated at once
    #[arg(long, value_parser = parse_duration, default_value = "15s")]
    pub node_unreachable_after: Duration,
}

/// A newtype, so that clap takes it for one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map(pub BTreeMap<String, String>);

fn parse_map(text: &str) -> Result<Map, String> {
    let pairs = text.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("'{pair}' is not of the form KEY=VALUE"))?;
        Ok((key.to_owned(), value.to_owned()))
    });
    pairs.collect::<Result<_, String>>().map(Map)
}

/// Durations as Go writes them, in the units that make sense here: `40s`, `1500ms`, `2m`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| format!("'{text}' is not a duration such as 40s, 1500ms or 2m"))?;
    match unit {
        "ms" if number > 0 => Ok(Duration::from_millis(number)),
        "s" if number > 0 => Ok(Duration::from_secs(number)),
        "m" if number > 0 => Ok(Duration::from_secs(number * 60)),
        _ => Err(format!("'{text}' is not a duration above zero such as 40s, 1500ms or 2m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_maps_are_read_or_refused_in_words() {
        assert_eq!(parse_duration("40s"), Ok(Duration::from_secs(40)));
        assert_eq!(parse_duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for bad in ["", "s", "0s", "5", "5h", "-1s"] {
            assert!(parse_duration(bad).unwrap_err().contains("40s"), "{bad}");
        }
        assert_eq!(
            parse_map("a=b,c=").unwrap().0,
            BTreeMap::from([("a".into(), "b".into()), ("c".into(), String::new())])
        );
        assert!(parse_map("a").unwrap_err().contains("KEY=VALUE"));
    }
}
