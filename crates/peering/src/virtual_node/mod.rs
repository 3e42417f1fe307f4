//! VirtualNode → a virtual-kubelet that serves it: ServiceAccount, bindings and Deployment, and back to nothing.
//!
//! [`forge`] says what they look like, [`children`] writes them when they differ, [`controller`] decides what is next
//! (from what `inputs` watches),
//! [`removal`] takes everything back in order (`cordon` and `drain` say how its pods leave, `eviction` asks them to), and [`status`] tells the user.

pub mod children;
pub mod controller;
mod cordon;
mod drain;
mod error;
mod eviction;
pub mod forge;
mod inputs;
mod merge;
mod naming;
mod observe;
mod removal;
pub mod status;
#[cfg(test)]
mod tests;

pub use controller::Controller;
