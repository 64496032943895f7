//! Decisions read from bytes, so that whoever breaks bytes breaks structures.

/// Bytes that are spent by decisions; where they end, every decision is 0.
#[derive(Clone, Debug)]
pub struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns one byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// Returns a number of 32 bits.
    pub fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        let taken = self.bytes(4);
        bytes[..taken.len()].copy_from_slice(taken);
        u32::from_le_bytes(bytes)
    }

    /// Returns a number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Returns one of several things.
    ///
    /// # Panics
    /// When there is none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns the next bytes, fewer where they end.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Returns bytes up to a length that one byte says.
    pub fn short(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte());
        self.bytes(count)
    }

    /// Returns the bytes up to a separator, which is spent; all of them where there is none.
    pub fn until(&mut self, separator: u8) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == separator);
        let taken = self.bytes(end.unwrap_or(self.0.len()));
        self.bytes(1);
        taken
    }

    /// Returns what is left.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Says whether all bytes are spent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
