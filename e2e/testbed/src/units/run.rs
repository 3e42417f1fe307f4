//! Brings units up: each in a thread of its own that waits for what it comes after.

use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::{Launch, Row, Scope, Site, Source, TABLE, Work, probe::Probe};
use crate::plan::{Cluster, Node, Plan};
use crate::process::Recorded;
use crate::progress::{Progress, Step};
use crate::spec::Spec;
use crate::state::{Home, write_file};
use crate::{binaries, digest, namespaces, packages};

/// How long a component may take until it serves.
const PATIENCE: Duration = Duration::from_secs(180);

/// One row of the table at one place.
pub struct Instance<'a> {
    pub row: &'static Row,
    pub cluster: &'a Cluster,
    pub node: &'a Node,
}

/// Everything that this shape consists of.
pub fn instances<'a>(spec: &Spec, plan: &'a Plan) -> Vec<Instance<'a>> {
    let mut all = Vec::new();
    for cluster in &plan.clusters {
        for row in TABLE.iter().filter(|row| (row.wanted)(spec)) {
            let nodes = if row.scope == Scope::Node { &cluster.nodes[..] } else { &cluster.nodes[..1] };
            all.extend(nodes.iter().map(|node| Instance { row, cluster, node }));
        }
    }
    all
}

impl Instance<'_> {
    /// As commands name it: `kubelet` on the first node, `kubelet-1` on the second.
    pub fn name(&self) -> String {
        name_on(self.row, self.node)
    }

    pub fn is_process(&self) -> bool {
        matches!(self.row.work, Work::Serve { .. })
    }

    pub fn recorded(&self, home: &Home) -> Recorded {
        Recorded::at(home.process_record(&self.cluster.name, &self.name()))
    }

    fn key(&self) -> String {
        format!("{}/{}", self.cluster.name, self.name())
    }

    /// The keys of what must be ready first.
    fn dependencies(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for row in self.row.after.iter().filter_map(|name| TABLE.iter().find(|row| row.name == *name)) {
            let nodes = match (row.scope, self.row.scope) {
                (Scope::Node, Scope::Node) => std::slice::from_ref(self.node),
                (Scope::Node, Scope::Cluster) => &self.cluster.nodes[..],
                (Scope::Cluster, _) => &self.cluster.nodes[..1],
            };
            keys.extend(nodes.iter().map(|node| format!("{}/{}", self.cluster.name, name_on(row, node))));
        }
        keys
    }

    fn ensure(&self, home: &Home, spec: &Spec, progress: &Progress) -> Result<()> {
        let site = Site { home, spec, cluster: self.cluster, node: self.node };
        let step = progress.step(&self.key());
        match &self.row.work {
            Work::Once(work) => {
                work(&site, &step)?;
                step.done("done");
            }
            Work::Serve { launch, ready } => {
                let started = self.ensure_process(&site, launch(&site)?, &ready(&site), &step);
                let log = home.log(&self.cluster.name, &self.name());
                let started = started.map_err(|error| anyhow!("{error:#}\n{}", log_tail(&log)))?;
                step.done(if started { "ready" } else { "was ready" });
            }
        }
        Ok(())
    }

    /// Starts what does not run as wanted and waits until it serves; whether it had to be started.
    fn ensure_process(&self, site: &Site<'_>, mut launch: Launch, probe: &Probe, step: &Step) -> Result<bool> {
        launch.args.extend(site.spec.extra_args.get(self.row.name).cloned().unwrap_or_default());
        let program = program(&self.row.source)?;
        let network = site.home.network_namespace(&self.node.name);
        let mounts = launch.in_node_mounts.then(|| site.home.mount_namespace(&self.node.name));
        let fingerprint = fingerprint(&program, &launch, &[Some(&network), mounts.as_ref()]);
        let recorded = self.recorded(site.home);
        let runs_as_wanted = recorded.alive().is_some() && recorded.has_fingerprint(&fingerprint);
        if !runs_as_wanted {
            recorded.stop(Duration::from_secs(20))?;
            for (path, content) in &launch.files {
                write_file(path, content)?;
            }
            recorded.start(&crate::process::Launch {
                program: &program,
                args: &launch.args,
                network_namespace: &network,
                mount_namespace: mounts.as_deref(),
                log: &site.home.log(&self.cluster.name, &self.name()),
                fingerprint: &fingerprint,
            })?;
        }
        let deadline = Instant::now() + PATIENCE;
        while !probe.passes(&network) {
            step.waiting(&probe.describe());
            if recorded.alive().is_none() {
                bail!("{} ended by itself while it was starting", self.key());
            }
            if Instant::now() > deadline {
                bail!("{} does not serve at {} after {} s", self.key(), probe.describe(), PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(!runs_as_wanted)
    }
}

/// Brings everything up, as much at a time as the dependencies allow.
pub fn bring_up(home: &Home, spec: &Spec, plan: &Plan, progress: &Progress) -> Result<()> {
    let all = instances(spec, plan);
    let board = Board::default();
    std::thread::scope(|scope| {
        for instance in &all {
            let board = &board;
            scope.spawn(move || {
                if board.wait_for(&instance.dependencies()) {
                    board.report(instance.key(), instance.ensure(home, spec, progress));
                }
            });
        }
    });
    board.into_result()
}

/// Starts one process and waits until it serves.
pub fn start_one(home: &Home, spec: &Spec, instance: &Instance<'_>, progress: &Progress) -> Result<()> {
    instance.ensure(home, spec, progress)
}

/// Who is ready, and what failed first.
#[derive(Default)]
struct Board {
    state: Mutex<(BTreeSet<String>, Option<anyhow::Error>)>,
    changed: Condvar,
}

impl Board {
    /// False when something failed: there is nothing left to wait for.
    fn wait_for(&self, keys: &[String]) -> bool {
        let Ok(state) = self.state.lock() else {
            return false;
        };
        let waited = self
            .changed
            .wait_while(state, |(ready, failure)| failure.is_none() && !keys.iter().all(|key| ready.contains(key)));
        waited.is_ok_and(|state| state.1.is_none())
    }

    fn report(&self, key: String, result: Result<()>) {
        if let Ok(mut state) = self.state.lock() {
            match result {
                Ok(()) => {
                    state.0.insert(key);
                }
                Err(error) => {
                    state.1.get_or_insert(error.context(format!("{key} did not come up")));
                }
            }
        }
        self.changed.notify_all();
    }

    fn into_result(self) -> Result<()> {
        let state = self.state.into_inner().map_err(|_| anyhow!("a starting thread died"))?;
        state.1.map_or(Ok(()), Err)
    }
}

fn name_on(row: &Row, node: &Node) -> String {
    if row.scope == Scope::Node && node.index > 0 {
        return format!("{}-{}", row.name, node.index);
    }
    row.name.to_owned()
}

fn program(source: &Source) -> Result<PathBuf> {
    match source {
        Source::Go(program) => binaries::path(program),
        Source::Debian(program, _) => packages::find(program).with_context(|| format!("{program} is not installed")),
        Source::Testbed(_) => bail!("it has no program"),
    }
}

/// What a running process must match: its program, flags, configuration and the namespaces it lives in.
fn fingerprint(program: &std::path::Path, launch: &Launch, homes: &[Option<&PathBuf>]) -> String {
    let labels: Vec<String> = homes.iter().flatten().map(|path| namespaces::label(path).unwrap_or_default()).collect();
    let mut parts: Vec<&[u8]> = vec![program.as_os_str().as_encoded_bytes()];
    parts.extend(launch.args.iter().map(String::as_bytes));
    parts.extend(launch.files.iter().map(|(_, content)| content.as_bytes()));
    parts.extend(labels.iter().map(String::as_bytes));
    digest::of_parts(&parts)
}

fn log_tail(log: &std::path::Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(32 << 10)..]).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = &lines[lines.len().saturating_sub(15)..];
    format!("the end of {}:\n  {}", log.display(), tail.join("\n  "))
}
