//! A virtual-kubelet that is away for longer than its Node may be silent: the machine that it runs on is gone for a while.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use spillway_e2e::{Observer, wait};

use super::{patient, restarts};
use crate::pods::{SERVE, is_ready};
use crate::{VIRTUAL_NODE, alone, node, testbed, victims};

const KUBELET: &str = "home/kubelet";

#[tokio::test]
async fn pods_outlive_a_long_absence_of_their_virtual_kubelet() -> Result<()> {
    alone(async |namespace| {
        let (home, away) = (namespace.home_pods(), namespace.away_pods());
        for name in ["one", "two"] {
            home.create(&PostParams::default(), &patient(name, SERVE)).await?;
            wait::until_one("a ready pod", home.clone(), name, |pod| pod.is_some_and(is_ready)).await?;
        }
        let (local, remote) = (home.get("one").await?, away.get("one").await?);
        let seen = Observer::of(away.clone());
        let nodes = Api::<Node>::all(namespace.home.client.clone());

        // With its kubelet gone nobody starts it again.
        testbed().kill(KUBELET)?;
        let during = async {
            victims::virtual_kubelet(&namespace).vanish().await?;
            let silent = |node: Option<&Node>| {
                node.and_then(node::ready_condition).is_some_and(|(status, _)| status == "Unknown")
            };
            wait::until_one("the node to be given up", nodes.clone(), VIRTUAL_NODE, silent).await?;
            let unready = |pod: Option<&Pod>| pod.is_some_and(|pod| !is_ready(pod));
            wait::until_one("the node controller's word on the pod", home.clone(), "one", unready).await.map(drop)
        };
        let during = during.await;
        testbed().start(KUBELET)?;
        during?;

        wait::until_one("the node", nodes, VIRTUAL_NODE, |node| node.is_some_and(node::is_ready)).await?;
        for name in ["one", "two"] {
            wait::until_one("the pod to be Ready again", home.clone(), name, |pod| pod.is_some_and(is_ready)).await?;
        }
        let (local_after, remote_after) = (home.get("one").await?, away.get("one").await?);
        ensure!(local_after.uid() == local.uid() && remote_after.uid() == remote.uid(), "replaced");
        ensure!(restarts(&local_after) == 0 && restarts(&remote_after) == 0, "restarted");
        let lives = seen.runs().remove(&local.uid().context("a UID")?).context("its remote pod")?;
        ensure!(lives.len() == 1, "{lives:?}");
        Ok(())
    })
    .await
}
