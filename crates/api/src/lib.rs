//! The API that every part of Spillway shares: the custom resources, the well-known names and exact quantities.
//!
//! The kinds are wire-compatible with Liqo's (`*.liqo.io/v1beta1`): a manifest, a client or a GitOps repository made for
//! Liqo works unchanged. There is no client and no I/O in this crate.
//!
//! **Operators patch, they never put.** Where a kind embeds an object of Kubernetes (a node selector, a taint, a
//! condition), the schema keeps fields that this build does not know, but the Rust types drop them. Reading an object,
//! changing it and writing it back whole would therefore lose what a newer client wrote; a patch of the fields that
//! the operator owns loses nothing. What must travel whole (the pod of a ShadowPod, the template of a VirtualNode, the
//! endpoints of a ShadowEndpointSlice) is held as raw JSON and survives any round trip.

#![allow(clippy::duplicated_attributes, reason = "printer columns and short names repeat the same attribute")]

pub mod authentication;
pub mod core;
pub mod crds;
pub mod k8s;
pub mod live;
pub mod networking;
pub mod node;
pub mod offloading;
mod packed;
pub mod quantity;
pub mod raw_pod;
mod schema;
pub mod well_known;

pub use packed::Packed;
pub use quantity::{Quantity, ResourceList};
pub use raw_pod::RawPod;

/// The API version that every kind of this crate is served in.
pub const VERSION: &str = "v1beta1";

/// An object of Kubernetes kept as it came, so that no field of it is ever lost.
pub type RawObject = serde_json::Map<String, serde_json::Value>;

/// For `skip_serializing_if`: a flag that is off is written by leaving it out.
fn is_false(flag: &bool) -> bool {
    !flag
}

/// For `skip_serializing_if`: a count that has not started is written by leaving it out.
fn is_zero(count: &i64) -> bool {
    *count == 0
}
