//! The Node that stands for the remote cluster, and its heartbeat.

mod applied;
pub mod forge;
pub mod health;
pub mod keeper;
pub mod lease;
mod status;
pub mod version;
