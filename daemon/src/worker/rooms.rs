//! How engines share what the budget leaves for caches.
//!
//! Whoever has requests may use all of it. Where it is short, requests get in by the order of their arrival, over all
//! engines: nobody else takes what the oldest one waits for.

use tandem_engine::engine::CacheClaims;

/// What one engine holds and asks for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Claim {
    pub(super) bytes: CacheClaims,
    /// Number by arrival of the request that is to run next.
    pub(super) arrival: Option<u64>,
}

impl Claim {
    fn next(&self) -> Option<(u64, u64)> {
        Some((self.arrival?, self.bytes.next?))
    }
}

/// Returns the bytes that the caches of each engine may come to take now, of `pool` for all.
pub(super) fn share(pool: u64, claims: &[Claim]) -> Vec<u64> {
    let running: u64 = claims.iter().map(|claim| claim.bytes.running).sum();
    let free = pool.saturating_sub(running);
    let oldest = claims.iter().filter_map(Claim::next).min();
    let rooms = claims.iter().map(|claim| {
        let own = claim.bytes.running;
        match oldest {
            Some(oldest) if claim.next() != Some(oldest) => own + free.saturating_sub(oldest.1),
            _ => own + free,
        }
    });
    rooms.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(running: u64, next: Option<(u64, u64)>) -> Claim {
        Claim {
            bytes: CacheClaims {
                running,
                next: next.map(|(_, bytes)| bytes),
            },
            arrival: next.map(|(arrival, _)| arrival),
        }
    }

    #[test]
    fn who_is_alone_has_all_of_it() {
        assert_eq!(share(100, &[claim(30, None), claim(0, None)]), [100, 70]);
        assert_eq!(share(100, &[claim(30, Some((1, 50)))]), [100]);
        assert_eq!(share(100, &[]), Vec::<u64>::new());
    }

    #[test]
    fn the_oldest_goes_first() {
        let claims = [claim(40, Some((8, 10))), claim(20, Some((7, 30)))];
        assert_eq!(share(100, &claims), [50, 60], "10 are left besides the 30");
        let claims = [claim(40, Some((8, 10))), claim(20, Some((7, 50)))];
        assert_eq!(
            share(100, &claims),
            [40, 60],
            "the younger waits although it would fit"
        );
    }

    #[test]
    fn two_that_each_need_nearly_all_run_one_after_the_other() {
        let claims = [claim(0, Some((2, 80))), claim(0, Some((1, 80)))];
        assert_eq!(share(100, &claims), [20, 100]);
        let claims = [claim(0, Some((2, 80))), claim(80, None)];
        assert_eq!(share(100, &claims), [20, 80]);
        assert_eq!(
            share(100, &[claim(0, Some((2, 80))), claim(0, None)])[0],
            100
        );
    }

    #[test]
    fn a_pool_that_shrank_takes_nothing_back() {
        assert_eq!(share(50, &[claim(40, None), claim(30, None)]), [40, 30]);
    }
}
