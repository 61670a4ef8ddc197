//! Typed option values, and the text forms of each type.

use std::time::Duration;

/// Type of an option, with its allowed values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// `yes`/`no`, `on`/`off`, `true`/`false`, `1`/`0`, in any case.
    Bool,
    /// A boolean in name that also takes a whole number (`evs.auto_evict`).
    BoolOrInt,
    /// Whole number within bounds; suffixes `K`, `M`, `G`, `T` are powers of 1024, `0x` starts a hexadecimal number.
    Int {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// Decimal number within bounds.
    Double {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// ISO 8601 period (`PT1M30.5S`, `P1D`) or plain decimal seconds (`90`, `0.5`).
    Duration,
    /// Any text.
    Str,
    /// `auto`, or a number of bytes as in [`Kind::Int`]; kept as written.
    AutoOrSize,
    /// One of several words, in any case.
    Choice(&'static [&'static str]),
    /// Empty, or a host with optional scheme and port.
    Address,
}

/// A value of an option.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    /// Boolean.
    Bool(bool),
    /// Whole number.
    Int(i64),
    /// Decimal number.
    Double(f64),
    /// Period; the configuration service of MariaDB 11.8 takes it as a double, in seconds.
    Duration(Duration),
    /// Text.
    Str(String),
}

impl Kind {
    /// Reads a value; `None` if it is not one of this type.
    pub fn parse(self, text: &str) -> Option<Typed> {
        match self {
            Kind::Bool => parse_bool(text).map(Typed::Bool),
            Kind::BoolOrInt => parse_bool(text)
                .or_else(|| parse_int(text).filter(|&n| n >= 0).map(|n| n != 0))
                .map(Typed::Bool),
            Kind::Int { min, max } => parse_int(text)
                .filter(|n| (min..=max).contains(n))
                .map(Typed::Int),
            Kind::Double { min, max } => parse_decimal(text)
                .filter(|n| (min..=max).contains(n))
                .map(Typed::Double),
            Kind::Duration => parse_duration(text).map(Typed::Duration),
            Kind::Str => Some(Typed::Str(text.to_string())),
            Kind::AutoOrSize => (text.eq_ignore_ascii_case("auto")
                || parse_int(text).is_some_and(|n| n >= 0))
            .then(|| Typed::Str(text.to_string())),
            Kind::Choice(words) => find_word(words, text).map(|word| Typed::Str(word.to_string())),
            Kind::Address => (text.is_empty()
                || crate::url::HostPort::parse_with_scheme(text).is_ok())
            .then(|| Typed::Str(text.to_string())),
        }
    }

    /// Returns a description of the type's values, for error messages.
    pub fn expectation(self) -> String {
        match self {
            Kind::Bool => "yes or no".to_string(),
            Kind::BoolOrInt => "yes, no or a whole number".to_string(),
            Kind::Int { min, max: i64::MAX } => format!("a whole number of at least {min}"),
            Kind::Int { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Double { min, max } => format!("a number from {min} to {max}"),
            Kind::Duration => "a period such as PT1M30S, or seconds".to_string(),
            Kind::Str => "text".to_string(),
            Kind::AutoOrSize => "auto or a whole number of bytes".to_string(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Address => "host, host:port, [IPv6] or [IPv6]:port".to_string(),
        }
    }
}

/// Returns the one of `words` that `text` is, in any case of letters.
pub fn find_word(words: &[&'static str], text: &str) -> Option<&'static str> {
    let mut words = words.iter().copied();
    words.find(|word| word.eq_ignore_ascii_case(text))
}

/// Reads a boolean as Galera does.
pub fn parse_bool(text: &str) -> Option<bool> {
    let is = |words: [&str; 4]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is(["yes", "on", "true", "1"]) {
        Some(true)
    } else if is(["no", "off", "false", "0"]) {
        Some(false)
    } else {
        None
    }
}

/// Reads a whole number with an optional size suffix. `None` if it does not fit.
pub fn parse_int(text: &str) -> Option<i64> {
    let (digits, shift) = match text.as_bytes().last()?.to_ascii_uppercase() {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    let number = match digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        // `from_str_radix` would accept a sign here.
        Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
            i64::from_str_radix(hex, 16).ok()?
        }
        Some(_) => return None,
        None => digits.parse::<i64>().ok()?,
    };
    number.checked_mul(1_i64 << shift)
}

/// Reads a plain decimal number: no infinities, no NaN.
pub fn parse_decimal(text: &str) -> Option<f64> {
    let plain = text
        .bytes()
        .all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    text.parse::<f64>()
        .ok()
        .filter(|number| plain && number.is_finite())
}

/// Reads a period. Years count 365 days, months 30; only seconds may have a fraction, kept to the nanosecond.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let Some(period) = text.strip_prefix('P') else {
        return parse_seconds(text);
    };
    const DAY_S: u64 = 86_400;
    const DATE_UNITS: [(char, u64); 3] = [('Y', 365 * DAY_S), ('M', 30 * DAY_S), ('D', DAY_S)];
    const TIME_UNITS: [(char, u64); 3] = [('H', 3_600), ('M', 60), ('S', 1)];
    let (date, time) = match period.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (period, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    parse_units(date, &DATE_UNITS)?.checked_add(parse_units(time, &TIME_UNITS)?)
}

/// Sums numbers, each with one of `units` behind it; the units must come in order.
fn parse_units(mut text: &str, mut units: &[(char, u64)]) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let letter = text[end..].chars().next()?;
        let index = units.iter().position(|(unit, _)| *unit == letter)?;
        let part = match units[index].1 {
            1 => parse_seconds(&text[..end])?,
            unit_s => Duration::from_secs(text[..end].parse::<u64>().ok()?.checked_mul(unit_s)?),
        };
        sum = sum.checked_add(part)?;
        units = &units[index + 1..];
        text = &text[end + letter.len_utf8()..];
    }
    Some(sum)
}

/// Reads `digits[.digits]` as seconds, exactly; digits beyond the nanosecond are dropped.
fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits_only = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !digits_only(whole) || !digits_only(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let seconds = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    let nanos = fraction
        .bytes()
        .chain(std::iter::repeat(b'0'))
        .take(9)
        .fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    Some(Duration::new(seconds, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn booleans() {
        for text in ["yes", "YES", "on", "On", "true", "TRUE", "1"] {
            assert_eq!(parse_bool(text), Some(true), "{text}");
        }
        for text in ["no", "off", "false", "FALSE", "0"] {
            assert_eq!(parse_bool(text), Some(false), "{text}");
        }
        for text in ["", "2", "maybe", "y", "\"yes\""] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
        assert_eq!(Kind::BoolOrInt.parse("3"), Some(Typed::Bool(true)));
        assert_eq!(Kind::BoolOrInt.parse("-1"), None);
    }

    #[test]
    fn whole_numbers() {
        for (text, value) in [
            ("0", 0),
            ("007", 7),
            ("-1", -1),
            ("1K", 1024),
            ("1k", 1024),
            ("10M", 10 << 20),
            ("2G", 2 << 30),
            ("1T", 1 << 40),
            ("0x10", 16),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(parse_int(text), Some(value), "{text}");
        }
        for text in [
            "",
            "K",
            "1.5",
            "1KB",
            "abc",
            "9223372036854775808",
            "9007199254740992K",
            "0x-1",
            "0x",
            "1 K",
            "é",
        ] {
            assert_eq!(parse_int(text), None, "{text}");
        }
        assert_eq!(Kind::Int { min: 0, max: 255 }.parse("256"), None);
    }

    #[test]
    fn decimal_numbers() {
        assert_eq!(parse_decimal("0.25"), Some(0.25));
        for text in ["1,5", "", "inf", "NaN", "nan", "1e999", "0.5s"] {
            assert_eq!(parse_decimal(text), None, "{text}");
        }
    }

    #[test]
    fn periods() {
        for (text, ms) in [
            ("PT0.1S", 100),
            ("PT1S", 1_000),
            ("PT1M30.5S", 90_500),
            ("PT100M", 6_000_000),
            ("PT24H", 86_400_000),
            ("P1D", 86_400_000),
            ("P1DT1H", 90_000_000),
            (
                "P1Y2M3DT4H5M6.7S",
                ((365 + 60 + 3) * 86_400 + 4 * 3_600 + 5 * 60 + 6) * 1_000 + 700,
            ),
            ("6.500000", 6_500),
            ("1.50", 1_500),
            ("7", 7_000),
            ("0", 0),
            (".5", 500),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for text in [
            "",
            "P",
            "PT",
            "P1DT",
            "pt5s",
            "5s",
            "-1",
            "PT-1S",
            "P0.5D",
            "PT1.5M",
            "PT1S1M",
            "PT1M1M",
            "PT5",
            "PTS",
            "PT1.2.3S",
            "bogus",
            "1e3",
            "PT99999999999999999999S",
            "P18446744073709551615Y",
            "PT5é",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn words_and_addresses() {
        let formats = Kind::Choice(&["FLAT8", "FLAT16"]);
        assert_eq!(formats.parse("flat16"), Some(Typed::Str("FLAT16".into())));
        assert_eq!(formats.parse("x"), None);
        assert_eq!(Kind::Address.parse(""), Some(Typed::Str(String::new())));
        assert_eq!(Kind::Address.parse("[::1"), None);
        for text in ["auto", "1M", "0"] {
            assert_eq!(Kind::AutoOrSize.parse(text), Some(Typed::Str(text.into())));
        }
        for text in ["foo", "", "-1", "1.5"] {
            assert_eq!(Kind::AutoOrSize.parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_value_panics(text in any::<String>()) {
            for kind in [Kind::Bool, Kind::BoolOrInt, Kind::Int { min: 0, max: 9 }, Kind::Duration, Kind::Address] {
                let _ = kind.parse(&text);
            }
            let _ = parse_decimal(&text);
        }

        #[test]
        fn no_period_panics(text in "P?[0-9.YMDTHS]{0,40}") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn seconds_are_exact(ms in 0u64..1_000_000_000) {
            let text = format!("{}.{:03}", ms / 1000, ms % 1000);
            prop_assert_eq!(parse_duration(&text), Some(Duration::from_millis(ms)));
            prop_assert_eq!(parse_duration(&format!("PT{text}S")), Some(Duration::from_millis(ms)));
        }
    }
}
