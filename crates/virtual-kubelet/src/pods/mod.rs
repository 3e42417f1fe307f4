//! The pods of the virtual node.

pub mod controller;
pub mod digest;
pub mod forge;
pub mod plan;
pub mod status;
