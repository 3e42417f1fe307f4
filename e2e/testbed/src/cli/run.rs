//! What the command line does.

use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use super::{Action, Cli, ImageAction, UpArgs};
use crate::cut::Scope;
use crate::image::product;
use crate::progress::Progress;
use crate::spec::Spec;
use crate::status::{ComponentStatus, State};
use crate::testbed::Testbed;

impl Cli {
    pub fn run(self) -> Result<ExitCode> {
        let name = self.name;
        let open = || Testbed::open(&name);
        match self.command {
            Action::Up(args) => up(&name, args)?,
            Action::Down { all } => {
                let names = if all { crate::state::remains() } else { vec![name] };
                for name in names {
                    Testbed::remove(&name, &Progress::to_stderr())?;
                }
            }
            Action::Status => return status(&open()?),
            Action::Kubeconfig { cluster } => {
                println!("{}", open()?.cluster(&cluster)?.kubeconfig_path.display());
            }
            Action::Kubectl { cluster, args } => {
                return become_program(open()?.kubectl(&cluster)?.args(args));
            }
            Action::Helm { cluster, args } => return become_program(open()?.helm(&cluster)?.args(args)),
            Action::Exec { node, args } => {
                let Some((program, rest)) = args.split_first() else { bail!("name a program") };
                return become_program(open()?.on_node(&node, program)?.args(rest));
            }
            Action::Cut { a, b, control_plane, all: _ } => {
                let scope = if control_plane { Scope::ControlPlane } else { Scope::All };
                open()?.cut(&a, &b, scope)?;
            }
            Action::Mend { a, b } => open()?.mend(&a, &b)?,
            Action::Stop { component } => open()?.stop(&component)?,
            Action::Kill { component } => open()?.kill(&component)?,
            Action::Start { component } => open()?.start(&component)?,
            Action::LoadImage { archive, cluster } => open()?.load_image(&archive, cluster.as_deref())?,
            Action::Logs { component, follow } => {
                let mut tail = Command::new("tail");
                tail.args(if follow { ["-n", "100", "-F"] } else { ["-q", "-n", "+1"] });
                return become_program(tail.args(open()?.logs(&component)?));
            }
            Action::Image(ImageAction::Build { bin_dir, out, tag, binaries }) => {
                product::build(&bin_dir, &binaries, &tag, &out)?;
            }
            Action::Image(ImageAction::Rootfs { dir, bin_dir, binaries }) => {
                product::rootfs(&bin_dir, &binaries)?.write_directory(&dir)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn up(name: &str, args: UpArgs) -> Result<()> {
    let mut extra_args: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (component, flag) in args.args {
        extra_args.entry(component).or_default().push(flag);
    }
    let spec = Spec {
        clusters: args.clusters,
        nodes: args.nodes,
        kwok_nodes: args.kwok_nodes,
        control_plane_only: args.control_plane_only,
        overlapping_cidrs: args.overlapping_cidrs,
        prometheus: args.prometheus,
        api_qps: args.api_qps,
        extra_args,
    };
    let progress = Progress::to_stderr();
    let testbed = Testbed::up_with(name, &spec, progress.clone())?;
    let clusters: Vec<&str> = testbed.clusters().iter().map(|cluster| cluster.name.as_str()).collect();
    progress.say(&format!("{} up after {:.1} s", clusters.join(", "), progress.elapsed().as_secs_f32()));
    progress.say(&format!("try: testbed --name {name} kubectl {} -- get nodes -o wide", clusters[0]));
    Ok(())
}

fn status(testbed: &Testbed) -> Result<ExitCode> {
    let components = testbed.components();
    // The reader may be gone, as after `| head`; that is no failure.
    let _ = write_status(testbed, &components, &mut std::io::stdout().lock());
    let dead = components.iter().any(|component| component.state == State::Dead);
    Ok(if dead { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write_status(testbed: &Testbed, components: &[ComponentStatus], out: &mut impl Write) -> Result<()> {
    writeln!(out, "testbed {} in {}", testbed.name(), testbed.dir().display())?;
    for cluster in testbed.clusters() {
        writeln!(out, "\n{}  {}", cluster.name, cluster.api_url)?;
        writeln!(out, "  pods {}  services {}", cluster.pod_cidr, cluster.service_cidr)?;
        if cluster.pod_cidr != cluster.reachable_pod_cidr {
            writeln!(out, "  pods are reached from outside under {}", cluster.reachable_pod_cidr)?;
        }
        if let Some(url) = &cluster.prometheus_url {
            writeln!(out, "  prometheus {url}")?;
        }
        for component in components.iter().filter(|component| component.cluster == cluster.name) {
            writeln!(out, "  {:<26} {}", component.name, component.state)?;
        }
    }
    for (a, b, scope) in testbed.cuts()?.iter() {
        let what = if scope == Scope::All { "everything" } else { "control planes only" };
        writeln!(out, "\ncut: {a} and {b} ({what})")?;
    }
    Ok(())
}

/// Replaces this process, so that terminals, signals and exit codes are the program's own.
fn become_program(command: &mut Command) -> Result<ExitCode> {
    let error = command.stdin(std::process::Stdio::inherit()).exec();
    bail!("cannot run {}: {error}", command.get_program().to_string_lossy())
}
