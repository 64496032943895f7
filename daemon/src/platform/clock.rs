//! The local time as text, for chat templates that tell the model the date.
#![expect(unsafe_code, reason = "the system's calendar is in C")]

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::time::{SystemTime, UNIX_EPOCH};

/// Longest text that a pattern makes; patterns come from model files, and can ask for any width.
const MOST: usize = 1 << 10;

/// Writes the current local time by a pattern of strftime(3), as Python does for a time without a zone: `%f` is the
/// microsecond, and the zone is empty. Empty, too, where the pattern makes no text, or more than anybody reads.
pub(crate) fn local_time(pattern: &str) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let Some(time) = i64::try_from(now.as_secs()).ok().and_then(local) else {
        return String::new();
    };
    written(&time, now.subsec_micros(), pattern)
}

/// localtime_r(3): "converts the calendar time to broken-down time representation, expressed relative to the user's
/// specified timezone", "or NULL".
fn local(seconds: i64) -> Option<libc::tm> {
    let seconds = libc::time_t::from(seconds);
    let mut time = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: it reads the first and writes all of the second, unless it returns null. It keeps neither.
    let result = unsafe { libc::localtime_r(&raw const seconds, time.as_mut_ptr()) };
    // SAFETY: it was written, since the result is not null.
    (!result.is_null()).then(|| unsafe { time.assume_init() })
}

fn written(time: &libc::tm, micros: u32, pattern: &str) -> String {
    let mut plain = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            plain.push(letter);
            continue;
        }
        match letters.next() {
            Some('f') => plain.push_str(&format!("{micros:06}")),
            Some('z' | 'Z') => {}
            Some(other) => plain.extend(['%', other]),
            None => plain.push_str("%%"),
        }
    }
    let Ok(plain) = CString::new(plain) else {
        return String::new();
    };
    let mut text = [0_u8; MOST];
    // SAFETY: strftime(3) "places the result in the character array s of size max", reads a C string and a time, and keeps
    // none of them. Its result is the number of bytes before the final null byte, or 0 where they do not fit.
    let bytes = unsafe {
        libc::strftime(
            text.as_mut_ptr().cast(),
            text.len(),
            plain.as_ptr(),
            &raw const *time,
        )
    };
    let written = text.get(..bytes).unwrap_or_default();
    String::from_utf8_lossy(written).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saturday() -> libc::tm {
        let mut time = local(0).expect("the time of the epoch");
        // 2025-07-26 12:05:09, as `golden.py` of the templates has it.
        (time.tm_year, time.tm_mon, time.tm_mday) = (125, 6, 26);
        (time.tm_hour, time.tm_min, time.tm_sec) = (12, 5, 9);
        (time.tm_wday, time.tm_yday) = (6, 206);
        time
    }

    #[test]
    fn patterns_mean_what_they_mean_in_python() {
        let written = |pattern: &str| written(&saturday(), 30, pattern);
        for (pattern, text) in [
            ("%d %b %Y", "26 Jul 2025"),
            ("%Y-%m-%d", "2025-07-26"),
            (
                "%A, %B %d, %Y at %H:%M:%S, day %j, week %U, %p %I %y %%",
                "Saturday, July 26, 2025 at 12:05:09, day 207, week 29, PM 12 25 %",
            ),
            ("%H:%M:%S.%f%z%Z!", "12:05:09.000030!"),
            ("année %Y 年", "année 2025 年"),
            ("100%", "100%"),
            ("", ""),
            ("a\0b", ""),
        ] {
            assert_eq!(written(pattern), text, "{pattern}");
        }
        assert!(written(&"x".repeat(1 << 20)).is_empty());
        assert!(written("%999999d").len() < MOST);
    }

    #[test]
    fn the_year_is_this_one() {
        let year: i32 = local_time("%Y").parse().expect("a year");
        assert!((2024..3000).contains(&year), "{year}");
    }
}
