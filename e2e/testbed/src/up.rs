//! Makes a testbed, or whatever is missing of one.

use anyhow::{Context, Result};

use crate::cut::Cuts;
use crate::lock::DirLock;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::spec::Spec;
use crate::state::{self, Home, Record};
use crate::{binaries, certs, cgroup, kubeconfig, namespaces, net, packages, units};

/// Brings the testbed to at least the wanted shape. Every step finds out what is there already.
pub fn bring_up(home: &Home, wanted: &Spec, progress: &Progress) -> Result<Record> {
    wanted.validate()?;
    let (programs, _) = units::requirements(wanted);
    let to_build = programs
        .iter()
        .any(|program| binaries::path(program).is_ok_and(|path| !path.exists()));
    packages::check_machine(to_build)?;
    let _lock = home.lock()?;
    let existing = home.exists().then(|| home.record()).transpose()?;
    let spec = existing
        .as_ref()
        .map_or_else(|| Ok(wanted.clone()), |record| record.spec.grown_by(wanted))?;

    let (programs, needed) = units::requirements(&spec);
    packages::ensure(&needed, progress)?;
    for program in programs {
        binaries::ensure(program, progress)?;
    }
    let record = remember(home, existing, spec)?;
    let plan = Plan::new(record.slot, &record.spec);
    net::ensure(home, &plan).context("cannot make the testbed's network")?;
    Cuts::load(home)?
        .enforce(home, &plan)
        .context("cannot put the cuts into force")?;
    for cluster in &plan.clusters {
        certs::ensure(&home.pki(&cluster.name), cluster)?;
        kubeconfig::write(home, cluster, "admin", &home.kubeconfig(&cluster.name))?;
    }
    if record.spec.has_kubelets() {
        for (_, node) in plan.nodes() {
            namespaces::ensure_mount(home, &node.name)?;
            cgroup::ensure(&home.node_cgroup(&node.name))?;
        }
    }
    units::bring_up(home, &record.spec, &plan, progress)?;
    Ok(record)
}

/// Writes down what is about to be made, so that a crash leaves nothing that nobody knows of.
fn remember(home: &Home, existing: Option<Record>, spec: Spec) -> Result<Record> {
    let mut record = match existing {
        Some(existing) => Record { spec, ..existing },
        None => state::allocate(home, &spec, &net::host_routes_in_use()?)?,
    };
    let _list = DirLock::acquire(&state::root(), "the list of testbeds")?;
    if record.spec.has_kubelets() {
        // Read again: a testbed that went away meanwhile may have left its folders to this one.
        record.made_directories.extend(home.record()?.made_directories);
        record.made_directories.extend(namespaces::ensure_node_paths()?);
    }
    home.save(&record)?;
    Ok(record)
}
