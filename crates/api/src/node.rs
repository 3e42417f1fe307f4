//! Virtual nodes told from real ones, and from those of other clusters.

use crate::k8s::Node;
use crate::well_known::{annotation, label, name};

/// What a Node is, by what it bears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// One that a kubelet registered, or that does not say yet what it is.
    Real,
    /// One that stands for a remote cluster; `None` if it has lost every trace of which.
    Virtual { cluster_id: Option<String> },
}

impl NodeKind {
    /// A virtual node that lost its labels is still one; a real one never is, whatever its labels.
    pub fn of(node: &Node) -> Self {
        let runtime = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        let runtime = runtime.map_or("", |info| info.container_runtime_version.as_str());
        let labelled = |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key));
        let noted = node.metadata.annotations.as_ref().and_then(|all| all.get(annotation::NODE_CLUSTER_ID));
        let cluster_id = noted.or_else(|| labelled(label::REMOTE_CLUSTER_ID)).cloned();
        let labelled_virtual = labelled(label::NODE_TYPE).is_some_and(|kind| kind == label::NODE_TYPE_VIRTUAL);
        match runtime {
            name::NODE_RUNTIME => Self::Virtual { cluster_id },
            "" if labelled_virtual && cluster_id.is_some() => Self::Virtual { cluster_id },
            _ => Self::Real,
        }
    }

    /// Whether it is a virtual node of this remote cluster.
    pub fn leads_to(&self, cluster: &str) -> bool {
        match self {
            Self::Real => false,
            Self::Virtual { cluster_id } => cluster_id.as_deref().is_none_or(|id| id == cluster),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(runtime: &str, labels: serde_json::Value, annotations: serde_json::Value) -> NodeKind {
        let info = json!({"containerRuntimeVersion": runtime, "architecture": "", "bootID": "", "kernelVersion": "",
            "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "operatingSystem": "", "osImage": "",
            "systemUUID": ""});
        let node = json!({"metadata": {"labels": labels, "annotations": annotations}, "status": {"nodeInfo": info}});
        NodeKind::of(&serde_json::from_value(node).unwrap())
    }

    #[test]
    fn a_node_is_told_by_its_runtime_then_by_its_marks() {
        let (none, both) = (json!({}), json!({"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"}));
        let noted = json!({"offloading.spillway.dev/remote-cluster-id": "milan"});
        let relabelled = json!({"liqo.io/remote-cluster-id": "turin"});
        for (runtime, labels, annotations, ours, what) in [
            ("spillway://", &both, &noted, true, "as it was made"),
            ("spillway://", &none, &none, true, "stripped of everything"),
            ("spillway://", &relabelled, &noted, true, "relabelled by somebody"),
            ("spillway://", &relabelled, &none, false, "of another cluster"),
            ("", &both, &none, true, "made by Liqo"),
            ("", &json!({"liqo.io/type": "virtual-node"}), &none, false, "virtual, but of no one"),
            ("", &none, &none, false, "not saying yet what it is"),
            ("containerd://2.0.0", &none, &none, false, "real"),
            ("containerd://2.0.0", &both, &noted, false, "real, whatever its marks"),
        ] {
            let kind = kind(runtime, labels.clone(), annotations.clone());
            assert_eq!(kind.leads_to("milan"), ours, "{what}");
        }
    }
}
