//! Definitions as the YAML that is checked in.

use serde::Serialize;

/// Prints a value the way that `crds/` holds it.
pub fn print(value: &impl Serialize) -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(value)
}
