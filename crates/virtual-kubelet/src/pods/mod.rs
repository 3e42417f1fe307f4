//! The pods of the virtual node.

pub mod controller;
mod creation;
pub mod digest;
pub mod fields;
pub mod forge;
pub mod plan;
pub mod status;
pub mod writes;
