//! What every Spillway operator is made of: clients to one or two clusters, watches into indexes, a keyed queue
//! with bounded workers, leader election, supervised tasks, health and metrics.
//!
//! It knows nothing of pods, namespaces or peering: the rules live in the operators.

pub mod args;
pub mod client;
pub mod error;
pub mod guarded;
pub mod health;
mod hush;
pub mod index;
pub mod key;
pub mod leader;
pub mod managed;
pub mod metrics;
pub mod patience;
pub mod peer;
pub mod queue;
pub mod server;
pub mod supervise;
pub mod telemetry;
pub mod watch;
pub mod watches;
pub mod workers;

pub use error::{Categorised, Category};
pub use guarded::Guarded;
pub use index::Index;
pub use key::ObjectKey;
pub use queue::Queue;
pub use workers::Action;
