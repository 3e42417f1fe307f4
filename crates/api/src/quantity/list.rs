//! Amounts of several resources at once.

use std::collections::BTreeMap;

use super::{Quantity, share_of};

/// An amount for each resource, by the resource's name.
pub type ResourceList = BTreeMap<String, Quantity>;

/// Adds `other` to `total`. A sum beyond every amount that can be held stays at what it was.
pub fn add(total: &mut ResourceList, other: &ResourceList) {
    for (resource, amount) in other {
        let sum = total.entry(resource.clone()).or_default();
        *sum = sum.checked_add(*amount).unwrap_or(*sum);
    }
}

/// The sum of all lists.
pub fn sum<'a>(lists: impl IntoIterator<Item = &'a ResourceList>) -> ResourceList {
    let mut total = ResourceList::new();
    for list in lists {
        add(&mut total, list);
    }
    total
}

/// What remains of each resource of `whole` after taking `part` away, which is never less than nothing. A resource that
/// only `part` has does not appear.
pub fn saturating_sub(whole: &ResourceList, part: &ResourceList) -> ResourceList {
    whole
        .iter()
        .map(|(resource, amount)| {
            let taken = part.get(resource).copied().unwrap_or_default();
            (resource.clone(), amount.saturating_sub(taken))
        })
        .collect()
}

/// So many hundredths of each resource, each rounded down at its own granularity.
pub fn share_of_list(whole: &ResourceList, percent: u32) -> ResourceList {
    whole.iter().map(|(resource, amount)| (resource.clone(), share_of(resource, amount, percent))).collect()
}
