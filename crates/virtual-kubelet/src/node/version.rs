//! The version of the remote API server, which the Node shows as its kubelet's. Asked anew each time the peer is back.

use std::time::Duration;

use kube::Client;
use spillway_operator::peer::Reach;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(2);

/// Keeps `version` up to date until `stop`; it stays as it is while the peer is away.
pub async fn follow(
    client: Client,
    mut reach: watch::Receiver<Reach>,
    version: watch::Sender<String>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let following = async {
        loop {
            reach.wait_for(|reach| matches!(reach, Reach::Reachable)).await?;
            match tokio::time::timeout(TIMEOUT, client.apiserver_version()).await {
                Ok(Ok(info)) => {
                    version.send_if_modified(|known| {
                        std::mem::replace(known, info.git_version.clone()) != info.git_version
                    });
                    reach.wait_for(|reach| !matches!(reach, Reach::Reachable)).await?;
                }
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the version of the remote API server cannot be read");
                    tokio::time::sleep(RETRY).await;
                }
                Err(_) => {}
            }
        }
        #[allow(unreachable_code, reason = "names the type of the error")]
        anyhow::Ok(())
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => Ok(()),
        ended = following => ended,
    }
}
