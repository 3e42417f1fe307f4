//! What the end-to-end tests and the demo share: two real clusters with Spillway installed by its charts, and the steps
//! that a user still does by hand.

pub mod audit;
pub mod by_hand;
pub mod cluster;
pub mod dump;
pub mod install;
pub mod namespace;
pub mod observe;
pub mod persist;
pub mod process;
pub mod wait;

pub use cluster::Side;
pub use namespace::{Namespace, offloaded};
pub use observe::Observer;
