//! End-to-end tests on two real clusters, `home` and `away`, shared by all tests of this binary. Spillway is installed by
//! the umbrella chart; every test has a namespace of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod crds;
mod enforcement;
mod faults;
mod fields;
mod kills;
mod metrics;
mod node;
mod node_drain;
mod node_health;
mod node_kept;
mod node_refused;
mod node_removal;
mod parity;
mod partition;
mod placement;
mod pods;
mod recreation;
mod references;
mod status;
mod updates;
mod victims;
mod watches;

use std::sync::LazyLock;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use spillway_e2e::{Namespace, Side, by_hand, install, wait};
use spillway_testbed::{Spec, Testbed};
use tokio::sync::{Semaphore, watch};

/// The virtual node that every test may use.
pub const VIRTUAL_NODE: &str = "away";

static TESTBED: LazyLock<Testbed> = LazyLock::new(|| {
    let making = std::thread::spawn(|| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let made = runtime.block_on(set_up("e2e", Spec { prometheus: true, ..Spec::default() }));
        made.unwrap_or_else(|error| panic!("the clusters cannot be made: {error:#}"))
    });
    making.join().expect("the clusters are made")
});

/// The clusters, made when the first test asks for them.
pub fn testbed() -> &'static Testbed {
    &TESTBED
}

/// So many tests share the clusters at once; who cuts the link or measures has them all.
const PLACES: u32 = 6;
static SHARED: Semaphore = Semaphore::const_new(PLACES as usize);

/// Tests that share the clusters, under way or waiting for a place. Those that must be alone come after them, so that the
/// clusters are not emptied and filled again for each.
static SHARING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

struct Sharing;

impl Sharing {
    fn enter() -> Self {
        SHARING.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        SHARING.send_modify(|count| *count -= 1);
    }
}

/// Runs a test in an offloaded namespace of its own, while nobody cuts the link.
pub async fn offloaded<F: Future<Output = Result<()>>>(test: impl FnOnce(Namespace) -> F) -> Result<()> {
    let _sharing = Sharing::enter();
    let _place = SHARED.acquire().await?;
    spillway_e2e::offloaded(testbed(), test).await
}

/// The same for a test that cuts the link, or measures: no other test runs meanwhile.
pub async fn alone<F: Future<Output = Result<()>>>(test: impl FnOnce(Namespace) -> F) -> Result<()> {
    SHARING.subscribe().wait_for(|count| *count == 0).await?;
    let _all = SHARED.acquire_many(PLACES).await?;
    spillway_e2e::offloaded(testbed(), test).await
}

/// Two clusters with Spillway from its charts, and a virtual node; also for a test that wants clusters of its own.
pub async fn set_up(name: &str, spec: Spec) -> Result<Testbed> {
    let image = install::build_image()?;
    let policy = install::root().join("e2e/suite/audit-policy.yaml");
    let audit = vec![format!("--audit-policy-file={}", policy.display()), "--audit-log-path=-".to_owned()];
    let spec = Spec { extra_args: [("kube-apiserver".to_owned(), audit)].into(), ..spec };
    let testbed = install::clusters(name, &spec, &image)?;
    install::umbrella(&testbed, "home", &image, true, false)?;
    install::umbrella(&testbed, "away", &image, false, true)?;
    let (home, away) = (Side::connect(&testbed, "home").await?, Side::connect(&testbed, "away").await?);
    let peering = by_hand::peer(&home, &away).await?;
    by_hand::virtual_node(&home, &peering, VIRTUAL_NODE).await?;
    let nodes = Api::<Node>::all(home.client.clone());
    wait::until_one("the virtual node to be Ready", nodes, VIRTUAL_NODE, |node| node.is_some_and(node::is_ready))
        .await?;
    Ok(testbed)
}
