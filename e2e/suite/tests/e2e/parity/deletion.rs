//! How a pod goes, on a real node and on the virtual one.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use spillway_e2e::{Namespace, Observer, wait};

use super::{cases, compare, names, pod_differences};
use crate::offloaded;
use crate::pods::{SERVE, is_ready};

/// Ignores SIGTERM: only the end of its grace ends it.
const STUBBORN: &str = "trap '' TERM; while true; do sleep 1; done";

/// Makes a pod, deletes it once it is ready, and gives how it was last seen and how long it took to go.
async fn deleted(
    namespace: &Namespace,
    name: &str,
    command: &str,
    on_virtual: bool,
    grace: u32,
) -> Result<(Pod, Duration)> {
    let spec = cases::placed(&json!({"containers": [cases::container("main", command)]}), on_virtual);
    let pod = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec}))?;
    namespace.home_pods().create(&PostParams::default(), &pod).await?;
    wait::until_one("a ready pod", namespace.home_pods(), name, |pod| pod.is_some_and(is_ready)).await?;
    let observer = Observer::of(namespace.home_pods());
    observer.until_seen(name, false).await?;
    let begun = Instant::now();
    namespace.home_pods().delete(name, &DeleteParams::default().grace_period(grace)).await?;
    wait::until_one("it to go", namespace.home_pods(), name, |pod| pod.is_none()).await?;
    let took = begun.elapsed();
    wait::until_one("nothing of it away", namespace.away_pods(), name, |pod| pod.is_none()).await?;
    Ok((observer.until_seen(name, true).await?, took))
}

async fn compared(namespace: &Namespace, case: &str, command: &str, grace: u32) -> Result<[Duration; 2]> {
    let [real, on_virtual] = ["real", "virtual"].map(|side| format!("{case}-{side}"));
    let (real, on_virtual) = futures::try_join!(
        deleted(namespace, &real, command, false, grace),
        deleted(namespace, &on_virtual, command, true, grace),
    )
    .with_context(|| case.to_owned())?;
    let names = |pod: &Pod| names(pod, namespace, None);
    let mut found = pod_differences((&real.0, &names(&real.0)), (&on_virtual.0, &names(&on_virtual.0)));
    // Whether a kubelet's last word still has the address depends on whether the sandbox is gone by then.
    found.retain(|(path, _, _)| !path.starts_with("status.podIP"));
    println!("{case}: gone after {:?} on the real node, {:?} on the virtual one", real.1, on_virtual.1);
    ensure!(found.is_empty(), "{case} was last seen with:\n{}", compare::words(&found));
    Ok([real.1, on_virtual.1])
}

#[tokio::test]
async fn a_deleted_pod_is_last_seen_as_on_a_real_node() -> Result<()> {
    offloaded(async |namespace| {
        let (stubborn, obedient, forced) = futures::try_join!(
            compared(&namespace, "stubborn", STUBBORN, 4),
            compared(&namespace, "obedient", SERVE, 60),
            compared(&namespace, "forced", STUBBORN, 0),
        )?;
        ensure!(stubborn.iter().all(|took| *took > Duration::from_secs(3)), "the grace was not given: {stubborn:?}");
        ensure!(obedient.iter().all(|took| *took < Duration::from_secs(50)), "the grace was waited for: {obedient:?}");
        ensure!(forced.iter().all(|took| *took < Duration::from_secs(3)), "force waits for nobody: {forced:?}");
        Ok(())
    })
    .await
}
