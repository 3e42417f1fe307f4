//! A status kept as text: as a tree of small objects it would take several times the room.

use crate::RawObject;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl Packed {
    pub fn of(object: &RawObject) -> Self {
        // A JSON object can always be written.
        Self(serde_json::to_vec(object).unwrap_or_default().into())
    }

    pub fn open(&self) -> RawObject {
        serde_json::from_slice(&self.0).unwrap_or_default()
    }
}
