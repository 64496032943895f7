//! Floating-point numbers as Python writes them.

/// The shortest text that reads as the same number: with an exponent below 1e-4 and from 1e16 on.
pub(super) fn repr(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{float:e}");
        // Rust writes 1e-5 where Python writes 1e-05.
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{float:?}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_look_as_in_python() {
        for (float, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e16, "1e+16"),
            (123_456_789_012_345.6, "123456789012345.6"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(super::repr(float), text);
        }
    }
}
