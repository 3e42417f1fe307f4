//! Exact quantities: what `resource.Quantity` is in Kubernetes, without a float anywhere.
//!
//! A quantity is a whole number of billionths and the family of suffixes that it was written with. It is read and
//! printed as Kubernetes does (`1000m` is `1`, `1.5Gi` is `1536Mi`); what is finer than a billionth is rounded away from
//! zero. Comparison and arithmetic look at the number only.

mod list;
mod text;

use std::{cmp::Ordering, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use list::{ResourceList, add, saturating_sub, share_of_list, sum};

use crate::{k8s::WireQuantity, schema::QUANTITY_PATTERN};

pub(crate) const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The family of suffixes that a quantity is written with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Powers of 1024: `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySi,
    /// Powers of 1000: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSi,
    /// Powers of 1000, as an exponent: `e3`, `e6`, …
    DecimalExponent,
}

/// The step to which a share is rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Thousandths, for what is divisible, such as CPU.
    Milli,
    /// Whole units: bytes, pods, devices.
    Unit,
}

impl Granularity {
    /// The step in which a resource of this name is given out.
    pub fn of(resource: &str) -> Self {
        match resource {
            "cpu" | "requests.cpu" | "limits.cpu" => Self::Milli,
            _ => Self::Unit,
        }
    }

    fn nanos(self) -> i128 {
        match self {
            Self::Milli => NANOS_PER_MILLI,
            Self::Unit => NANOS_PER_UNIT,
        }
    }
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// It does not begin with a number.
    #[error("{0:?} is not a quantity: expected a number with an optional suffix, such as 500m, 2 or 1Gi")]
    Number(String),
    /// What follows the number is no suffix.
    #[error(
        "{0:?} has an unknown suffix: expected one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3"
    )]
    Suffix(String),
    /// It is beyond every amount that can be held.
    #[error("{0:?} is too large a quantity")]
    TooLarge(String),
}

/// An exact amount of a resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    pub(crate) const fn from_nanos(nanos: i128, format: Format) -> Self {
        Self { nanos, format }
    }

    /// So many whole units.
    pub const fn from_units(units: i64) -> Self {
        Self::from_nanos(units as i128 * NANOS_PER_UNIT, Format::DecimalSi)
    }

    /// So many thousandths of a unit.
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_nanos(millis as i128 * NANOS_PER_MILLI, Format::DecimalSi)
    }

    /// So many bytes, printed with binary suffixes.
    pub const fn from_bytes(bytes: i64) -> Self {
        Self::from_nanos(bytes as i128 * NANOS_PER_UNIT, Format::BinarySi)
    }

    /// The suffixes that it is printed with, where they can hold it.
    pub fn format(self) -> Format {
        self.format
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is less than nothing.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The whole units, rounded up, as Kubernetes counts them; held to the range of the type.
    pub fn units(self) -> i64 {
        saturate(ceil(self.nanos, NANOS_PER_UNIT))
    }

    /// The thousandths, rounded up, as Kubernetes counts them; held to the range of the type.
    pub fn millis(self) -> i64 {
        saturate(ceil(self.nanos, NANOS_PER_MILLI))
    }

    /// The sum, unless it is beyond every amount that can be held.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Self::from_nanos(self.nanos.checked_add(other.nanos)?, format))
    }

    /// The difference, unless it is beyond every amount that can be held.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Self::from_nanos(self.nanos.checked_sub(other.nanos)?, format))
    }

    /// What remains after taking `other` away, which is never less than nothing.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self::from_nanos(self.nanos.saturating_sub(other.nanos).max(0), self.format)
    }

    /// So many hundredths of it, rounded down to `granularity`: 90 % of 3 pods are 2. Never more than the whole (what is
    /// above 100 % counts as 100 %) and never less than nothing.
    pub fn share(self, percent: u32, granularity: Granularity) -> Self {
        let percent = i128::from(percent.min(100));
        let whole = self.nanos.max(0);
        // Divided first, so that the product cannot overflow; the remainder keeps it exact.
        let share = whole / 100 * percent + whole % 100 * percent / 100;
        Self::from_nanos(share - share % granularity.nanos(), self.format)
    }
}

/// [`Quantity::share`] at the granularity that befits the resource: 90 % of one `cpu` are `900m`.
pub fn share_of(resource: &str, whole: &Quantity, percent: u32) -> Quantity {
    whole.share(percent, Granularity::of(resource))
}

fn ceil(nanos: i128, step: i128) -> i128 {
    nanos.div_euclid(step) + i128::from(nanos.rem_euclid(step) != 0)
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&text::print(self.nanos, self.format))
    }
}

impl TryFrom<&WireQuantity> for Quantity {
    type Error = ParseError;

    fn try_from(wire: &WireQuantity) -> Result<Self, ParseError> {
        wire.0.parse()
    }
}

impl From<Quantity> for WireQuantity {
    fn from(quantity: Quantity) -> Self {
        Self(quantity.to_string())
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a quantity, such as 20, \"500m\" or \"1Gi\"")
            }

            fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_units(units))
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                Ok(Quantity::from_nanos(i128::from(units) * NANOS_PER_UNIT, Format::DecimalSi))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An amount: a whole number, or a number with a suffix, such as 500m, 2 or 1Gi.",
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}
