//! A remote cluster as a Node: pods that are bound to it become ShadowPods over there, and their status comes back.
//!
//! It writes nothing on the other side but ShadowPods, and nothing destructive before every input has been listed.

pub mod addresses;
pub mod args;
pub mod node;
pub mod pods;
pub mod remote;
pub mod run;
mod time;
pub mod twins;

pub use args::Args;
pub use run::run;
