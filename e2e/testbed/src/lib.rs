//! Real Kubernetes clusters on one Linux machine, without Docker or a registry.
//!
//! A [`Testbed`] is a set of clusters with a network between them that can be cut. Everything is blocking:
//! from async code, call it through `spawn_blocking`. It needs root; `testbed --help` tells the rest.

mod binaries;
mod certs;
mod cgroup;
pub mod cli;
mod command;
mod cut;
mod digest;
mod down;
pub mod image;
mod kubeconfig;
mod lock;
mod namespaces;
mod nat;
mod net;
mod packages;
mod paths;
mod plan;
mod process;
mod progress;
mod spec;
mod state;
mod status;
mod sweep;
mod testbed;
mod units;
mod up;

pub use cut::{Cuts, Scope};
pub use plan::{Node, Plan};
pub use progress::Progress;
pub use spec::Spec;
pub use status::{ComponentStatus, State};
pub use testbed::{Cluster, Testbed};
