//! Quantities as text: read and printed as Kubernetes does.

use super::{Format, NANOS_PER_UNIT, ParseError, Quantity};

/// Decimal suffixes, by the power of ten that they stand for.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// Binary suffixes, by the power of 1024 that they stand for.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The most that Kubernetes holds under a binary suffix; what is above is capped.
const MAX_BINARY: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

enum Multiplier {
    Ten(i32),
    Binary(u32),
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return Err(ParseError::Number(text.to_owned()));
    }
    let (multiplier, format) = interpret(suffix).ok_or_else(|| ParseError::Suffix(text.to_owned()))?;

    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let fraction_digits = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let magnitude = scale(digits, fraction_digits, multiplier).ok_or_else(|| ParseError::TooLarge(text.to_owned()))?;

    let magnitude = if format == Format::BinarySi { magnitude.min(MAX_BINARY) } else { magnitude };
    let nanos = if text.starts_with('-') { -magnitude } else { magnitude };
    Ok(Quantity::from_nanos(nanos, format))
}

fn interpret(suffix: &str) -> Option<(Multiplier, Format)> {
    if let Some((_, power)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((Multiplier::Ten(*power), Format::DecimalSi));
    }
    if let Some(power) = (1u32..).zip(&BINARY[1..]).find_map(|(power, known)| (*known == suffix).then_some(power)) {
        return Some((Multiplier::Binary(power), Format::BinarySi));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Multiplier::Ten(exponent), Format::DecimalExponent))
}

/// The billionths in `digits` (without leading zeros), of which the last `fraction_digits` follow the point. What is
/// finer is rounded up. `None` if that is too large to hold.
fn scale(digits: &str, fraction_digits: i32, multiplier: Multiplier) -> Option<i128> {
    if digits.is_empty() {
        return Some(0);
    }
    let (power, factor) = match multiplier {
        Multiplier::Ten(power) => (power, 1),
        Multiplier::Binary(power) => (0, 1024_i128.pow(power)),
    };
    let shift = i64::from(power) - i64::from(fraction_digits) + 9;
    if shift >= 0 {
        let tens = 10_i128.checked_pow(u32::try_from(shift).ok()?)?;
        return digits.parse::<i128>().ok()?.checked_mul(factor)?.checked_mul(tens);
    }

    // Digits that no factor can lift to a billionth only matter in that they are not nothing.
    const EXTRA_DIGITS: usize = 19;
    let drop = usize::try_from(-shift).ok()?;
    let cut = drop.saturating_sub(EXTRA_DIGITS).min(digits.len());
    let (kept, lost) = digits.split_at(digits.len() - cut);
    let kept: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let lost_something = lost.bytes().any(|digit| digit != b'0');
    let tens = 10_i128.checked_pow(u32::try_from(drop.min(EXTRA_DIGITS)).ok()?)?;
    let lifted = kept.checked_mul(factor)?;
    Some(lifted / tens + i128::from(lifted % tens != 0 || lost_something))
}

pub(super) fn print(nanos: i128, format: Format) -> String {
    match format {
        _ if nanos == 0 => "0".to_owned(),
        // Small or fractional amounts lose nothing in the decimal family only.
        Format::BinarySi if nanos.abs() >= 1024 * NANOS_PER_UNIT && nanos % NANOS_PER_UNIT == 0 => {
            let (number, power) = reduce(nanos / NANOS_PER_UNIT, 1024, BINARY.len() - 1);
            format!("{number}{}", BINARY[power])
        }
        Format::BinarySi | Format::DecimalSi => {
            let (number, power) = reduce(nanos, 1000, DECIMAL.len() - 1);
            format!("{number}{}", DECIMAL[power].0)
        }
        Format::DecimalExponent => {
            let (number, power) = reduce(nanos, 1000, usize::MAX);
            match 3 * power {
                9 => number.to_string(),
                tens if tens > 9 => format!("{number}e{}", tens - 9),
                tens => format!("{number}e-{}", 9 - tens),
            }
        }
    }
}

/// Takes factors of `base` out of a number, `most` of them at most.
fn reduce(mut number: i128, base: i128, most: usize) -> (i128, usize) {
    let mut power = 0;
    while power < most && number % base == 0 {
        number /= base;
        power += 1;
    }
    (number, power)
}
