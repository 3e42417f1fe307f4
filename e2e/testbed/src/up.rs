//! Makes a testbed, or whatever is missing of one.

use anyhow::{Context, Result};

use crate::cut::Cuts;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::spec::Spec;
use crate::state::{self, Home, Record};
use crate::{binaries, certs, cgroup, kubeconfig, namespaces, net, packages, paths, units};

/// Brings the testbed to at least the wanted shape. Every step finds out what is there already.
pub fn bring_up(home: &Home, wanted: &Spec, progress: &Progress) -> Result<Record> {
    wanted.validate()?;
    units::check_names(wanted.extra_args.keys())?;
    let (programs, _) = units::requirements(wanted);
    let to_build = programs.iter().any(|program| binaries::path(program).is_ok_and(|path| !path.exists()));
    packages::check_machine(to_build)?;
    let _lock = home.lock()?;
    let existing = home.exists().then(|| home.record()).transpose()?;
    let spec = existing.as_ref().map_or_else(|| Ok(wanted.clone()), |record| record.spec.grown_by(wanted))?;

    let (programs, needed) = units::requirements(&spec);
    packages::ensure(&needed, progress)?;
    for program in programs {
        binaries::ensure(program, progress)?;
    }
    let record = remember(home, existing, spec)?;
    let plan = Plan::new(record.slot, &record.spec);
    net::load_modules();
    net::ensure(home, &plan).context("cannot make the testbed's network")?;
    Cuts::load(home)?.enforce(home, &plan).context("cannot put the cuts into force")?;
    for cluster in &plan.clusters {
        certs::ensure(&home.pki(&cluster.name), cluster)?;
        kubeconfig::write(home, cluster, "admin", &home.kubeconfig(&cluster.name))?;
    }
    if record.spec.has_kubelets() {
        paths::claim(home)?;
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
    let Some(existing) = existing else {
        return state::allocate(home, &spec, &net::host_routes_in_use()?);
    };
    let record = Record { spec, ..existing };
    home.save(&record)?;
    Ok(record)
}
