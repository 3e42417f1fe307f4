//! Quantities read, print and add up as they do in Kubernetes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use rstest::rstest;
use spillway_api::quantity::{
    Format, ParseError, Quantity, ResourceList, saturating_sub, share_of, share_of_list, sum,
};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[rstest]
#[case("0", "0")]
#[case("0n", "0")]
#[case("-0", "0")]
#[case("0Ki", "0")]
#[case("00", "0")]
#[case("1", "1")]
#[case("+1", "1")]
#[case("-1", "-1")]
#[case("0001000", "1k")]
#[case("1000m", "1")]
#[case("0.5", "500m")]
#[case(".5", "500m")]
#[case("5.", "5")]
#[case("1.5", "1500m")]
#[case("-1.5", "-1500m")]
#[case("100m", "100m")]
#[case("0.1", "100m")]
#[case("1.G", "1G")]
#[case("1500k", "1500k")]
#[case("1000k", "1M")]
#[case("1024", "1024")]
#[case("1Ki", "1Ki")]
#[case("1024Ki", "1Mi")]
#[case("62.5Ki", "64000")]
#[case("1024Mi", "1Gi")]
#[case("1.5Gi", "1536Mi")]
#[case("0.5Gi", "512Mi")]
#[case("-1.5Gi", "-1536Mi")]
#[case("1023Ki", "1023Ki")]
#[case("0.5Ki", "512")]
#[case("0.001Ki", "1024m")]
#[case("1000Ki", "1000Ki")]
#[case("1.0001Ki", "1024102400u")]
#[case("1Ei", "1Ei")]
#[case("1E", "1E")]
#[case("1e3", "1e3")]
#[case("1E3", "1e3")]
#[case("1e-3", "1e-3")]
#[case("1E+3", "1e3")]
#[case("1e1", "10")]
#[case("10e-1", "1")]
#[case("1000e3", "1e6")]
#[case("12.5e1", "125")]
#[case("100e-6", "100e-6")]
#[case("9223372036854775807", "9223372036854775807")]
#[case("9223372036854775808", "9223372036854775808")]
#[case("7Ei", "7Ei")]
#[case("8Ei", "9223372036854775807")]
#[case("16Ei", "9223372036854775807")]
#[case("-16Ei", "-9223372036854775807")]
#[case("9223372036854775807Ki", "9223372036854775807")]
#[case("1n", "1n")]
#[case("0.1n", "1n")]
#[case("-0.1n", "-1n")]
#[case("1.1n", "2n")]
#[case("0.0000000001", "1n")]
#[case("1e-30", "1e-9")]
#[case("0.000000000000000000000000000000000000000000001", "1n")]
#[case("1.0000000000000000000000000000000000000000000001", "1000000001n")]
#[case("0.00000000000000000000000000001Ei", "1n")]
#[case("1e27", "1e27")]
#[case("1000E", "1000E")]
fn reads_and_prints(#[case] text: &str, #[case] canonical: &str) {
    assert_eq!(quantity(text).to_string(), canonical);
}

#[rstest]
#[case("")]
#[case("+")]
#[case(".")]
#[case("Ki")]
#[case("aoeu")]
#[case(" 1")]
#[case("1.1.1")]
#[case("+-1")]
#[case("--1")]
#[case("١")]
fn refuses_what_is_no_number(#[case] text: &str) {
    assert_eq!(text.parse::<Quantity>(), Err(ParseError::Number(text.to_owned())));
}

#[rstest]
#[case("1 ")]
#[case("1i")]
#[case(".5i")]
#[case("0.1mi")]
#[case("0.1am")]
#[case("-3.01i")]
#[case("-3.01e-")]
#[case("1+1.0M")]
#[case("1e1.5")]
#[case("1K")]
#[case("1ki")]
#[case("1kb")]
#[case("1e9999999999")]
fn refuses_what_is_no_suffix(#[case] text: &str) {
    assert_eq!(text.parse::<Quantity>(), Err(ParseError::Suffix(text.to_owned())));
}

#[rstest]
#[case("1e30")]
#[case("1e2147483647")]
#[case("1000000000000000000000000000000000000000000")]
fn refuses_what_no_cluster_has(#[case] text: &str) {
    assert_eq!(text.parse::<Quantity>(), Err(ParseError::TooLarge(text.to_owned())));
}

#[rstest]
#[case("1Gi", "1073741824")]
#[case("1", "1000m")]
#[case("1k", "1e3")]
fn equal_amounts_are_equal(#[case] left: &str, #[case] right: &str) {
    assert_eq!(quantity(left), quantity(right));
}

#[rstest]
#[case("1Gi", "1G", "2073741824", "73741824")]
#[case("500m", "500m", "1", "0")]
#[case("0", "1Gi", "1Gi", "-1Gi")]
#[case("1", "1Gi", "1073741825", "-1073741823")]
fn adds_and_subtracts(#[case] left: &str, #[case] right: &str, #[case] total: &str, #[case] rest: &str) {
    let (left, right) = (quantity(left), quantity(right));
    assert_eq!(left.checked_add(right).unwrap().to_string(), total);
    assert_eq!(left.checked_sub(right).unwrap().to_string(), rest);
}

#[test]
fn counts_round_up() {
    assert_eq!((quantity("1500m").units(), quantity("1500m").millis()), (2, 1500));
    assert_eq!((quantity("-1500m").units(), quantity("1u").millis()), (-1, 1));
    assert_eq!((quantity("1000E").units(), quantity("-1000E").units()), (i64::MAX, i64::MIN));
    assert_eq!(Quantity::from_bytes(1 << 30).to_string(), "1Gi");
    assert_eq!(Quantity::from_millis(2500).to_string(), "2500m");
}

#[rstest]
#[case("cpu", "1", 90, "900m")]
#[case("cpu", "1m", 90, "0")]
#[case("limits.cpu", "333m", 50, "166m")]
#[case("pods", "3", 90, "2")]
#[case("nvidia.com/gpu", "1", 90, "0")]
#[case("memory", "10Gi", 90, "9Gi")]
#[case("memory", "1Gi", 90, "966367641")]
#[case("memory", "-1Gi", 90, "0")]
#[case("pods", "110", 0, "0")]
#[case("pods", "110", 100, "110")]
#[case("pods", "110", 250, "110")]
fn shares(#[case] resource: &str, #[case] whole: &str, #[case] percent: u32, #[case] share: &str) {
    assert_eq!(share_of(resource, &quantity(whole), percent).to_string(), share);
}

#[test]
fn lists() {
    let list = |json: &str| serde_json::from_str::<ResourceList>(json).unwrap();
    let (a, b) = (list(r#"{"cpu": 2, "memory": "1Gi"}"#), list(r#"{"cpu": "500m", "pods": "3"}"#));
    assert_eq!(sum([&a, &b]), list(r#"{"cpu": "2500m", "memory": "1Gi", "pods": 3}"#));
    assert_eq!(saturating_sub(&b, &a), list(r#"{"cpu": 0, "pods": 3}"#));
    assert_eq!(share_of_list(&b, 90), list(r#"{"cpu": "450m", "pods": 2}"#));
}

#[test]
fn json() {
    assert_eq!(serde_json::to_string(&quantity("1024Mi")).unwrap(), r#""1Gi""#);
    assert_eq!(serde_json::from_str::<Quantity>("20").unwrap(), quantity("20"));
    assert_eq!(serde_json::from_str::<Quantity>("-1").unwrap(), quantity("-1"));
    assert_eq!(serde_json::from_str::<Quantity>("18446744073709551615").unwrap(), quantity("18446744073709551615"));
    assert!(serde_json::from_str::<Quantity>("0.5").is_err());
    let message = serde_json::from_str::<Quantity>(r#""1 GB""#).unwrap_err().to_string();
    assert!(message.contains("expected one of"), "{message}");
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    let suffix = prop::sample::select(vec!["", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e-3", "e3"]);
    ("-?[0-9]{1,7}(\\.[0-9]{0,4})?", suffix).prop_map(|(number, suffix)| quantity(&format!("{number}{suffix}")))
}

proptest! {
    #[test]
    fn printing_loses_nothing(a in any_quantity()) {
        let printed = a.to_string();
        let read = quantity(&printed);
        prop_assert_eq!(read, a);
        // 62.5Ki is printed as 64000, as Kubernetes does, and what reads that may well write 64k.
        prop_assert!(read.format() != a.format() || read.to_string() == printed);
        prop_assert_eq!(quantity(&read.to_string()).to_string(), read.to_string());
    }

    #[test]
    fn printing_keeps_the_family_where_it_can(a in any_quantity()) {
        let read = quantity(&a.to_string()).format();
        prop_assert!(read == a.format() || read == Format::DecimalSi);
    }

    #[test]
    fn order_is_that_of_the_difference(a in any_quantity(), b in any_quantity()) {
        let difference = a.checked_sub(b).unwrap();
        prop_assert_eq!(a < b, difference.is_negative());
        prop_assert_eq!(a == b, difference.is_zero());
    }

    #[test]
    fn subtraction_undoes_addition(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a.checked_add(b).unwrap().checked_sub(b).unwrap(), a);
        prop_assert_eq!(a.checked_add(b), b.checked_add(a));
        prop_assert!(!a.saturating_sub(b).is_negative());
    }

    #[test]
    fn a_share_is_between_nothing_and_the_whole(a in any_quantity(), percent in 0u32..=100, cpu: bool) {
        let share = share_of(if cpu { "cpu" } else { "memory" }, &a, percent);
        prop_assert!(!share.is_negative());
        prop_assert!(share <= a.max(Quantity::ZERO));
    }

    #[test]
    fn shares_never_add_up_to_more_than_the_whole(a in any_quantity(), percent in 0u32..=100) {
        let both = share_of("cpu", &a, percent).checked_add(share_of("cpu", &a, 100 - percent)).unwrap();
        prop_assert!(both <= a.max(Quantity::ZERO));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
        let _ = text.parse::<Quantity>();
    }
}
