//! Puts the parts together.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use kube::api::Api;
use kube::runtime::watcher;
use kube::{Client, Config};
use parking_lot::{Mutex, RwLock};
use spillway_api::RawPod;
use spillway_api::k8s::Node;
use spillway_api::networking::Configuration;
use spillway_api::offloading::{NamespaceMap, OffloadingPatch, VirtualNode};
use spillway_api::well_known::label;
use spillway_operator::client::{self, Cluster};
use spillway_operator::health::{self, Gate, Readiness};
use spillway_operator::leader::{Election, Lead};
use spillway_operator::metrics::Metrics;
use spillway_operator::peer::{Peer, ProbeSettings, Reach};
use spillway_operator::supervise::Supervisor;
use spillway_operator::watches::Watches;
use spillway_operator::workers::{self, Limits};
use spillway_operator::{Index, ObjectKey, Queue, server};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::addresses::Addresses;
use crate::args::Args;
use crate::node::forge::Facts;
use crate::node::keeper::{NodeKeeper, Wanted};
use crate::node::lease::Heartbeat;
use crate::node::version;
use crate::pods::controller::{Controller, Refusals};
use crate::pods::digest::{self, LocalDigest, RemoteDigest};
use crate::pods::forge::Context;
use crate::pods::writes::Writes;
use crate::remote::{RemoteWatches, Troubles};
use crate::twins::Twins;

const CREDENTIALS_CHECK: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(2);

/// What several parts need.
struct Shared {
    args: Args,
    metrics: Metrics,
    readiness: Readiness,
    home: Cluster,
    stop: CancellationToken,
}

pub async fn run(args: Args) -> anyhow::Result<()> {
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    let mut supervisor = Supervisor::new()?;
    let stop = supervisor.stop();
    supervisor.spawn(
        "metrics server",
        server::run(args.common.metrics_address, metrics.clone(), readiness.clone(), stop.clone()),
    );
    let home_config = client::config(args.common.kubeconfig.as_deref()).await?;
    let away_config = client::config(Some(&args.foreign_kubeconfig)).await?;
    let home = Cluster::local(&home_config, &metrics)?;
    let away = Cluster::remote(&away_config, &metrics)?;
    let shared = Shared { args, metrics, readiness, home, stop };
    supervisor.spawn("credentials", watch_credentials(shared.args.clone(), shared.stop.clone()));
    let (own_client, _) = Cluster::separate(&home_config, "local", &shared.metrics)?;
    let found = supervisor.during(lead(&shared, own_client.clone())).await?.flatten();
    if let Some((lead, virtual_node)) = found {
        let remote = Remote { config: away_config, cluster: away };
        start(&mut supervisor, &shared, virtual_node, lead, own_client, remote)?;
    }
    supervisor.run().await
}

/// The cluster behind the virtual node.
struct Remote {
    config: Config,
    cluster: Cluster,
}

fn start(
    supervisor: &mut Supervisor,
    shared: &Shared,
    virtual_node: VirtualNode,
    lead: Lead,
    own_client: Client,
    remote: Remote,
) -> anyhow::Result<()> {
    let Shared { args, metrics, readiness, home, stop } = shared;
    let Remote { config: away_config, cluster: away } = remote;
    let context = Arc::new(Context {
        node_name: args.nodename.clone(),
        home_cluster_id: args.home_cluster_id.clone(),
        foreign_cluster_id: args.foreign_cluster_id.clone(),
        patch: patch(virtual_node.spec.offloading_patch.unwrap_or_default(), args),
    });

    let queue = Arc::new(Queue::default());
    let settings = ProbeSettings { interval: args.node_ping_interval, timeout: args.node_ping_timeout };
    let mut peer = Peer::new(away_config, away.connections.clone(), settings, metrics.clone());
    let locals = Arc::new(Index::default());
    let (kicked, woken) = (queue.clone(), locals.clone());
    let refusals = Arc::new(Refusals::default());
    let refused = refusals.clone();
    peer.on_return(move || {
        refused.forget_all();
        kicked.kick();
        woken.keys().into_iter().for_each(|key| kicked.add(key));
    });
    let (reach, kicks) = (peer.reach(), peer.kicks());
    let telling = tell_of_absence(peer.reach(), queue.clone(), locals.clone(), stop.clone());
    supervisor.spawn("news of the remote API server", telling);
    supervisor.spawn("probe of the remote API server", peer.run(stop.clone()));
    let (versions, version) = watch::channel(String::new());
    let following = version::follow(away.client.clone(), reach.clone(), versions, stop.clone());
    supervisor.spawn("version of the remote API server", following);

    let twins = Arc::new(Twins::default());
    let (shadows, troubles) = (Arc::new(Index::default()), Arc::new(Troubles::default()));
    let remotes = Arc::new(Index::keeping_last(|pod: &RemoteDigest| pod.has_ended));
    let watches = Watches { cluster: home, metrics, readiness };
    let maps = watch_maps(supervisor, &watches, args, &twins, &queue, &locals)?;
    let (addresses, configurations) = watch_addresses(supervisor, &watches, args, &queue, &locals)?;
    let pods = {
        let (queue, context) = (queue.clone(), context.clone());
        let config = watcher::Config::default().fields(&format!("spec.nodeName={}", args.nodename));
        let digest = move |pod: RawPod| digest::local(pod, &context);
        watches.start(supervisor, "pods", config, Api::all, &locals, digest, move |key| queue.add(key))?
    };
    let remote_watches = RemoteWatches {
        cluster: away.clone(),
        selector: context.selector(),
        metrics: metrics.clone(),
        kicks,
        twins: twins.clone(),
        queue: queue.clone(),
        locals: locals.clone(),
        shadows: shadows.clone(),
        remotes: remotes.clone(),
        troubles: troubles.clone(),
    };
    supervisor.spawn("watches of the remote cluster", remote_watches.run(stop.clone()));

    let changed = Arc::new(Notify::new());
    let (virtual_nodes, nodes) = (Arc::new(Index::default()), Arc::new(Index::keeping_last(|_: &Node| true)));
    let one = watcher::Config::default().fields(&format!("metadata.name={}", args.nodename));
    let notify = |changed: &Arc<Notify>| {
        let changed = changed.clone();
        move |_| changed.notify_one()
    };
    let wanted = |node: VirtualNode| Some(Wanted::of(node));
    let tenant = |client| Api::namespaced(client, &args.tenant_namespace);
    let listed = [
        watches.start(supervisor, "virtualnodes", one.clone(), tenant, &virtual_nodes, wanted, notify(&changed))?,
        watches.start(supervisor, "nodes", one, Api::all, &nodes, Some, notify(&changed))?,
        pods,
        maps,
        configurations,
    ];

    let facts = Facts {
        name: args.nodename.clone(),
        foreign_cluster_id: args.foreign_cluster_id.clone(),
        node_ip: args.node_ip.clone(),
        version: String::new(),
        extra_labels: args.node_extra_labels.0.clone(),
        extra_annotations: args.node_extra_annotations.0.clone(),
    };
    let controller = Arc::new(Controller {
        writes: Writes { home: home.client.clone(), away: away.client.clone() },
        context,
        node_ip: args.node_ip.clone(),
        addresses,
        locals,
        shadows,
        remotes,
        twins,
        troubles,
        reach: reach.clone(),
        unseen: Mutex::default(),
        finished: Mutex::default(),
        failures: Mutex::default(),
        refusals,
    });
    let heartbeat = Heartbeat {
        client: own_client.clone(),
        node_name: args.nodename.clone(),
        duration: args.node_lease_duration,
        nodes: nodes.clone(),
    };
    let keeper = NodeKeeper {
        client: own_client,
        facts,
        virtual_nodes,
        virtual_node: ObjectKey::new(args.tenant_namespace.as_str(), args.nodename.as_str()),
        nodes,
        reach,
        patience: args.node_unreachable_after,
        version,
        changed,
    };
    let (reconciles, create_node, stop) = (metrics.controller("pods"), args.create_node, stop.clone());
    let serves = readiness.gate(format!("a Node name that is free or ours: {}", args.nodename));
    supervisor.spawn(
        "virtual node",
        lead.work(async move {
            if !health::all_opened(&listed, &stop).await {
                return;
            }
            if !keeper.owns_name(&stop).await {
                return;
            }
            serves.open();
            let node = async {
                if create_node {
                    tokio::join!(keeper.run(stop.clone()), heartbeat.run(stop.clone()));
                }
            };
            let work = workers::run(
                queue,
                Limits { concurrency: 256, ..Limits::default() },
                reconciles,
                stop.clone(),
                move |key| {
                    let controller = controller.clone();
                    async move { controller.reconcile(key).await }
                },
            );
            tokio::join!(node, work);
        }),
    );
    Ok(())
}

/// The VirtualNode's patch, with the keys that the options of this virtual-kubelet keep at home.
fn patch(mut patch: OffloadingPatch, args: &Args) -> OffloadingPatch {
    patch.labels_not_reflected.extend(args.labels_not_reflected.iter().cloned());
    patch.annotations_not_reflected.extend(args.annotations_not_reflected.iter().cloned());
    patch
}

/// Waits until this process is the one that serves the virtual node; `None` if told to stop first. One of several that waits
/// for its turn is ready to take it. (A VirtualNode that changes meanwhile in what was read here rolls its Deployment.)
async fn lead(shared: &Shared, client: Client) -> Option<(Lead, VirtualNode)> {
    let Shared { args, metrics, stop, .. } = shared;
    let virtual_node = virtual_node(shared).await?;
    let lease = format!("virtual-kubelet-{}", args.nodename);
    let election = Election::new(client, &args.tenant_namespace, &lease, args.common.identity(), metrics.clone());
    Some((election.win(stop).await?, virtual_node))
}

/// Waits for the VirtualNode that this process serves; `None` if told to stop first.
async fn virtual_node(shared: &Shared) -> Option<VirtualNode> {
    let Shared { args, readiness, home, stop, .. } = shared;
    let found = readiness.gate(format!("VirtualNode {}/{}", args.tenant_namespace, args.nodename));
    let api = Api::<VirtualNode>::namespaced(home.client.clone(), &args.tenant_namespace);
    while !stop.is_cancelled() {
        match api.get(&args.nodename).await {
            Ok(virtual_node) => {
                found.open();
                return Some(virtual_node);
            }
            Err(error) => tracing::warn!(%error, "the VirtualNode cannot be read"),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(RETRY) => {}
        }
    }
    None
}

/// Has every pod looked at when the remote cluster goes away: those that wait for it say so.
async fn tell_of_absence(
    mut reach: watch::Receiver<Reach>,
    queue: Arc<Queue<ObjectKey>>,
    locals: Arc<Index<LocalDigest>>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut was_away = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            _ = reach.changed() => {}
        }
        let is_away = matches!(*reach.borrow_and_update(), Reach::Away { .. });
        if is_away && !was_away {
            locals.keys().into_iter().for_each(|key| queue.add(key));
        }
        was_away = is_away;
    }
}

/// Follows the NamespaceMap of the remote cluster; a change wakes every pod.
fn watch_maps(
    supervisor: &mut Supervisor,
    watches: &Watches<'_>,
    args: &Args,
    twins: &Arc<Twins>,
    queue: &Arc<Queue<ObjectKey>>,
    locals: &Arc<Index<LocalDigest>>,
) -> anyhow::Result<Gate> {
    let config =
        watcher::Config::default().labels(&format!("{}={}", label::REMOTE_CLUSTER_ID, args.foreign_cluster_id));
    let maps = Arc::new(Index::<NamespaceMap>::default());
    let (followed, twins, queue, locals) = (maps.clone(), twins.clone(), queue.clone(), locals.clone());
    let own = args.foreign_cluster_id.clone();
    let follow = move |key: ObjectKey| {
        if *key.name != *own {
            return; // clients and peering name it after the remote cluster; any other is not ours to follow
        }
        twins.follow(followed.get(&key).as_deref());
        locals.keys().into_iter().for_each(|key| queue.add(key));
    };
    let tenant = args.tenant_namespace.clone();
    let api = move |client| Api::namespaced(client, &tenant);
    watches.start(supervisor, "namespacemaps", config, api, &maps, Some, follow)
}

/// Follows the Configuration of the remote cluster; a change wakes every pod.
fn watch_addresses(
    supervisor: &mut Supervisor,
    watches: &Watches<'_>,
    args: &Args,
    queue: &Arc<Queue<ObjectKey>>,
    locals: &Arc<Index<LocalDigest>>,
) -> anyhow::Result<(Arc<RwLock<Addresses>>, Gate)> {
    let config =
        watcher::Config::default().labels(&format!("{}={}", label::REMOTE_CLUSTER_ID, args.foreign_cluster_id));
    let (addresses, index) = (Arc::new(RwLock::default()), Arc::new(Index::<Configuration>::default()));
    let (told, followed, queue, locals) = (addresses.clone(), index.clone(), queue.clone(), locals.clone());
    let follow = move |_| {
        // There is one per peer; of several the first by name counts, so that the answer does not depend on their order.
        let first = followed.keys().into_iter().min().and_then(|key| followed.get(&key));
        let now = Addresses::of(first.as_deref());
        if *told.read() != now {
            *told.write() = now;
            locals.keys().into_iter().for_each(|key| queue.add(key));
        }
    };
    let tenant = args.tenant_namespace.clone();
    let api = move |client| Api::namespaced(client, &tenant);
    let listed = watches.start(supervisor, "configurations", config, api, &index, Some, follow)?;
    Ok((addresses, listed))
}

/// Credentials that were renewed are taken over by a restart, which by contract touches no pod.
async fn watch_credentials(args: Args, stop: CancellationToken) -> anyhow::Result<()> {
    let path = &args.foreign_kubeconfig;
    let read = || std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let first = read()?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(CREDENTIALS_CHECK) => {}
        }
        match read() {
            Ok(now) if now != first => {
                tracing::info!("the credentials of the remote cluster were renewed: restarting with them");
                stop.cancel();
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(error = format!("{error:#}"), "the credentials cannot be read again"),
        }
    }
}
