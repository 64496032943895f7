//! What a prepared file belongs to.

use std::fmt;
use std::str::FromStr;

/// Names the bytes of a model file, whatever it is called: a SHA-256 over the SHA-256 of each of its parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentId(pub(crate) [u8; 32]);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

impl FromStr for ContentId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut id = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(());
        }
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| ())?;
        }
        Ok(Self(id))
    }
}

/// What a prepared file belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The model file.
    pub content: ContentId,
    /// Name of the instruction set whose kernels read it, such as `avx2`: lower-case letters, digits and dashes.
    pub isa: String,
    /// Version of those kernels' layout.
    pub layout: u32,
}

impl Key {
    /// The name of the file; half of the content's digits are plenty for a name, and the file has them all.
    pub(crate) fn file_name(&self) -> String {
        let content = self.content.to_string();
        format!(
            "{}-{}-{}{}",
            &content[..32],
            self.isa,
            self.layout,
            super::store::EXTENSION
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ids_are_written_and_read() {
        let id = ContentId(std::array::from_fn(|at| (7 * at) as u8));
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert_eq!(wrong.parse::<ContentId>(), Err(()), "{wrong}");
        }
    }
}
