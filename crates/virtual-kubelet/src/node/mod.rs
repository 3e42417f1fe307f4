//! The Node that stands for the remote cluster, and its heartbeat.

pub mod forge;
pub mod keeper;
pub mod lease;
