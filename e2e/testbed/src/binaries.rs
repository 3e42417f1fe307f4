//! Programs built from pinned Go modules, kept in the user's cache under a digest of what they are built from.

use anyhow::{Context, Result};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::command::{command, run_ticking};
use crate::digest;
use crate::progress::{Progress, Step};
use crate::state::write_file;

/// A Go module of ours that pins the versions of what is built from it.
struct Module {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Flags of the linker beyond those that strip.
    linker_flags: &'static str,
}

macro_rules! module {
    ($name:literal, $linker_flags:literal $(, $file:literal)*) => {
        Module {
            name: $name,
            files: &[
                ("go.mod", include_str!(concat!("../modules/", $name, "/go.mod"))),
                ("go.sum", include_str!(concat!("../modules/", $name, "/go.sum"))),
                $(($file, include_str!(concat!("../modules/", $name, "/", $file))),)*
            ],
            linker_flags: $linker_flags,
        }
    };
}

static KUBERNETES: Module = module!("kubernetes", "-X k8s.io/component-base/version.gitVersion=v1.34.4");
static ETCD: Module = module!("etcd", "");
static COREDNS: Module = module!("coredns", "");
static HELM: Module = module!("helm", "");
static KWOK: Module = module!("kwok", "");
static PAUSE: Module = module!("pause", "", "main.go");

/// What can be built: (program, module, package). A new program is a new row.
static PROGRAMS: [(&str, &Module, &str); 11] = [
    ("etcd", &ETCD, "go.etcd.io/etcd/server/v3"),
    ("kube-apiserver", &KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", &KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kube-scheduler", &KUBERNETES, "k8s.io/kubernetes/cmd/kube-scheduler"),
    ("kubelet", &KUBERNETES, "k8s.io/kubernetes/cmd/kubelet"),
    ("kube-proxy", &KUBERNETES, "k8s.io/kubernetes/cmd/kube-proxy"),
    ("kubectl", &KUBERNETES, "k8s.io/kubernetes/cmd/kubectl"),
    ("helm", &HELM, "helm.sh/helm/v4/cmd/helm"),
    ("coredns", &COREDNS, "github.com/coredns/coredns"),
    ("kwok", &KWOK, "sigs.k8s.io/kwok/cmd/kwok"),
    ("pause", &PAUSE, "."),
];

/// Where a program is, or would be once built.
pub fn path(program: &str) -> Result<PathBuf> {
    let (module, _) = find(program)?;
    Ok(module.dir()?.join(program))
}

/// The program, built if it is not there; another process that builds it is waited for.
pub fn ensure(program: &str, progress: &Progress) -> Result<PathBuf> {
    let (module, package) = find(program)?;
    let built = module.dir()?.join(program);
    if built.exists() {
        return Ok(built);
    }
    let step = progress.step(&format!("build {program}"));
    step.waiting("its turn");
    let source = module.unpack()?;
    let lock = File::create(module.dir()?.join(format!(".{program}.lock")))?;
    lock.lock().with_context(|| format!("cannot lock the build of {program}"))?;
    if !built.exists() {
        progress.say(&format!("building {program} from {package}: only once, minutes when nothing is cached"));
        build(module, package, &source, &built, &step)?;
    }
    step.done("built");
    Ok(built)
}

fn build(module: &Module, package: &str, source: &Path, built: &Path, step: &Step) -> Result<()> {
    let temporary = built.with_extension(format!("{}.new", std::process::id()));
    let mut go = command("go");
    go.current_dir(source)
        .env("CGO_ENABLED", "0")
        .args(["build", "-ldflags", &module.all_linker_flags(), "-o"])
        .arg(&temporary)
        .arg(package);
    if let Err(error) = run_ticking(&mut go, || step.waiting(&format!("go build {package}"))) {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    fs::rename(&temporary, built).with_context(|| format!("cannot place {}", built.display()))
}

fn find(program: &str) -> Result<(&'static Module, &'static str)> {
    PROGRAMS.iter().find(|(name, _, _)| *name == program).map(|(_, module, package)| (*module, *package)).with_context(
        || {
            let known: Vec<&str> = PROGRAMS.iter().map(|(name, _, _)| *name).collect();
            format!("the testbed cannot build {program:?}; it can build: {}", known.join(", "))
        },
    )
}

impl Module {
    fn all_linker_flags(&self) -> String {
        format!("-s -w {}", self.linker_flags).trim().to_owned()
    }

    /// Changes with every version, flag and source.
    fn digest(&self) -> String {
        let flags = self.all_linker_flags();
        let mut parts: Vec<&[u8]> = vec![flags.as_bytes()];
        for (name, content) in self.files {
            parts.extend([name.as_bytes(), content.as_bytes()]);
        }
        digest::short(&parts)
    }

    fn dir(&self) -> Result<PathBuf> {
        Ok(cache()?.join("bin").join(format!("{}-{}", self.name, self.digest())))
    }

    /// The module's files where Go can build them: the binary carries them, so the sources need not be near.
    fn unpack(&self) -> Result<PathBuf> {
        let source = self.dir()?.join("source");
        for (name, content) in self.files {
            let path = source.join(name);
            if fs::read_to_string(&path).ok().as_deref() != Some(*content) {
                write_file(&path, content)?;
            }
        }
        Ok(source)
    }
}

/// `$XDG_CACHE_HOME/spillway/testbed`, or the same below `~/.cache`.
fn cache() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| env::home_dir().map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("spillway").join("testbed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_follows_versions_and_flags() {
        let stripped = Module { linker_flags: "", ..KUBERNETES };
        assert_ne!(stripped.digest(), KUBERNETES.digest());
        let bumped = Module { files: &[("go.mod", "other")], ..KUBERNETES };
        assert_ne!(bumped.digest(), KUBERNETES.digest());
    }

    #[test]
    fn an_unknown_program_is_named_with_those_that_are_known() {
        let error = path("minikube").unwrap_err().to_string();
        assert!(error.contains("minikube") && error.contains("kubelet"), "{error}");
    }
}
