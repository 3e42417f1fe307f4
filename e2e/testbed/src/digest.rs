//! Content digests.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of the parts, each preceded by its length so that parts cannot run into one another.
pub fn of_parts(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

/// The first characters of [`of_parts`]: enough for a name.
pub fn short(parts: &[&[u8]]) -> String {
    of_parts(parts).chars().take(12).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_one_another() {
        assert_ne!(of_parts(&[b"ab", b"c"]), of_parts(&[b"a", b"bc"]));
        assert_eq!(short(&[b"a"]).len(), 12);
    }
}
