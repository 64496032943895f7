//! The thresholds of the mobile write-up, for comparison.

/// Drafted tokens that are looked back on.
const LENGTH: u32 = 10;
/// Draft length before anything was drafted.
const FIRST_LENGTH: usize = 3;

/// Which of the last ten drafted tokens were accepted; tokens behind a rejected one were not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// One bit a token, the newest lowest.
    accepted: u16,
    seen: u32,
}

impl Window {
    /// Takes a drafted token.
    pub(super) fn observe(&mut self, accepted: bool) {
        self.accepted = (self.accepted << 1 | u16::from(accepted)) & ((1 << LENGTH) - 1);
        self.seen = (self.seen + 1).min(LENGTH);
    }

    /// Share of them that was accepted; 0 before the first.
    #[must_use]
    pub(super) fn acceptance(&self) -> f64 {
        f64::from(self.accepted.count_ones()) / f64::from(self.seen.max(1))
    }

    /// Draft length: 5 above an acceptance of 0.80, none under 0.50, and 2 to 3 from 0.55 to 0.70. What the write-up
    /// leaves open is filled in so that the length never falls as acceptance rises: 4 from 0.70 to 0.80, 3 from 0.625, 1
    /// from 0.50 to 0.55.
    #[must_use]
    pub(super) fn draft_length(&self) -> usize {
        if self.seen == 0 {
            return FIRST_LENGTH;
        }
        match self.acceptance() {
            a if a > 0.80 => 5,
            a if a > 0.70 => 4,
            a if a >= 0.625 => 3,
            a if a >= 0.55 => 2,
            a if a >= 0.50 => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_by_the_last_ten_tokens() {
        let lengths: Vec<usize> = (0..=10)
            .map(|accepted| {
                let mut window = Window::default();
                (0..30).for_each(|_| window.observe(true));
                (0..10).for_each(|token| window.observe(token < accepted));
                window.draft_length()
            })
            .collect();
        assert_eq!(lengths, [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 5]);
        assert_eq!(Window::default().draft_length(), 3);
    }
}
