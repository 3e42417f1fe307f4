//! Times as the API writes them.

use jiff::Timestamp;

/// Times in the API have whole seconds.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
