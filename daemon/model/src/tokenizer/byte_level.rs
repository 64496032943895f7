//! The alphabet of byte-level BPE: one printable character for each byte.

use std::sync::LazyLock;

/// Bytes that stand for themselves: printable Latin-1 without the space and the soft hyphen.
fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The other bytes take the characters from U+0100 on, in order.
static TO_CHAR: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut table = ['\0'; 256];
    let mut next = 0x100_u32;
    for byte in 0..=u8::MAX {
        table[usize::from(byte)] = if is_printable(byte) {
            char::from(byte)
        } else {
            next += 1;
            char::from_u32(next - 1).expect("68 characters from U+0100 on exist")
        };
    }
    table
});

pub(super) fn to_char(byte: u8) -> char {
    TO_CHAR[usize::from(byte)]
}

/// The bytes of UTF-8 that a vocabulary lacks, which have no token; `None` where it has all.
pub(super) fn missing(has: impl Fn(&str) -> bool) -> Option<Box<[bool; 256]>> {
    // The bytes that never occur.
    let never = |byte| matches!(byte, 0xc0 | 0xc1 | 0xf5..=0xff);
    let lacks = |byte| !never(byte) && !has(to_char(byte).encode_utf8(&mut [0; 4]));
    let mut missing = Box::new([false; 256]);
    for byte in 0..=u8::MAX {
        missing[usize::from(byte)] = lacks(byte);
    }
    missing.contains(&true).then_some(missing)
}

/// The character of every byte in turn.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn alphabet() -> impl Iterator<Item = char> {
    (0..=u8::MAX).map(to_char)
}

fn to_byte(letter: char) -> Option<u8> {
    match u32::from(letter) {
        code @ 0..=0xff => u8::try_from(code).ok().filter(|&byte| is_printable(byte)),
        0x100..=0x143 => {
            let at = TO_CHAR.iter().position(|&c| c == letter)?;
            u8::try_from(at).ok()
        }
        _ => None,
    }
}

/// The bytes behind a token's text; a character outside the alphabet stands for its own UTF-8.
pub(super) fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match to_byte(letter) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        for byte in 0..=u8::MAX {
            assert_eq!(to_byte(to_char(byte)), Some(byte));
        }
        assert_eq!(
            (to_char(b' '), to_char(b'\n'), to_char(0xad)),
            ('Ġ', 'Ċ', 'Ń')
        );
        assert_eq!(decode("Ġa漢"), " a漢".as_bytes());
    }
}
