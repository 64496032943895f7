//! Keeps the system from idle sleep while requests run, and only then.

use std::sync::Arc;

use crate::platform::{KeepAwake, Platform};

/// Holds the guard while there is work.
#[derive(Debug)]
pub(super) struct Awake {
    platform: Arc<dyn Platform>,
    guard: Option<KeepAwake>,
}

impl Awake {
    pub(super) fn new(platform: Arc<dyn Platform>) -> Self {
        Self {
            platform,
            guard: None,
        }
    }

    /// Takes the guard when work begins, and gives it back when it ends.
    pub(super) fn follow(&mut self, busy: bool) {
        match (busy, &self.guard) {
            (true, None) => self.guard = Some(self.platform.keep_awake()),
            (false, Some(_)) => self.guard = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::FakePlatform;

    #[test]
    fn one_guard_lasts_as_long_as_the_work() {
        let fake = FakePlatform::default();
        let mut awake = Awake::new(Arc::new(fake.clone()));
        let guards = [false, true, true, false, true].map(|busy| {
            awake.follow(busy);
            fake.awake()
        });
        assert_eq!(guards, [0, 1, 1, 0, 1]);
        drop(awake);
        assert_eq!(fake.awake(), 0);
    }
}
