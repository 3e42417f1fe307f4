//! The certificates of the webhooks: an authority in a Secret that all replicas share, a certificate per process that it
//! signed, and the authority in the webhook configuration so that API servers trust it.

mod authority;
mod keeper;
mod plan;
mod writes;

pub use authority::{Authority, Serving};
pub use keeper::{Current, Keeper, Names};
