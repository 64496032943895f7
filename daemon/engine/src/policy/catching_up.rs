//! What it costs a drafter to take in tokens that it has missed.

use super::CatchUp;

/// What of older measurements is left with each new one.
const KEPT: f64 = 0.9;
/// Share of its largest value under which a determinant says that all measurements are alike.
const ALIKE: f64 = 0.02;

/// Seconds as a sum of two parts: so many for each request and so many for each token. On the CPU tokens are what costs; a GPU
/// takes a prompt in the time of a few tokens, and what these cost says nothing of its length.
///
/// Least squares, relative to the tokens, over measurements that are forgotten by and by.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CatchingUp {
    /// Sums over measurements of products of requests (r), tokens (t) and seconds (s), each divided by the tokens.
    rr: f64,
    rt: f64,
    tt: f64,
    rs: f64,
    ts: f64,
}

impl CatchingUp {
    pub(super) fn record(&mut self, took: CatchUp) {
        if took.tokens == 0 || took.requests == 0 {
            return;
        }
        let (r, t, s) = (took.requests as f64, took.tokens as f64, took.seconds);
        let news = [r * r / t, r, t, r * s / t, s];
        let sums = [
            &mut self.rr,
            &mut self.rt,
            &mut self.tt,
            &mut self.rs,
            &mut self.ts,
        ];
        for (sum, new) in sums.into_iter().zip(news) {
            *sum = KEPT * *sum + new;
        }
    }

    /// Expected seconds for one request to take in `tokens` tokens; `None` while nothing was measured.
    pub(super) fn seconds(&self, tokens: usize) -> Option<f64> {
        if self.tt <= 0.0 {
            return None;
        }
        let (each, token) = self.parts();
        Some(match tokens {
            0 => 0.0,
            tokens => each + token * tokens as f64,
        })
    }

    /// Seconds of a request and of a token, neither negative.
    fn parts(&self) -> (f64, f64) {
        let determinant = self.rr * self.tt - self.rt * self.rt;
        let by_tokens = (0.0, self.ts / self.tt);
        if determinant < ALIKE * self.rr * self.tt {
            return by_tokens;
        }
        let each = (self.rs * self.tt - self.ts * self.rt) / determinant;
        let token = (self.rr * self.ts - self.rt * self.rs) / determinant;
        match (each < 0.0, token < 0.0) {
            (true, _) => by_tokens,
            (_, true) => (self.rs / self.rr, 0.0),
            _ => (each, token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(took: &[(usize, usize)], each: f64, token: f64) -> CatchingUp {
        let mut costs = CatchingUp::default();
        for &(requests, tokens) in took {
            costs.record(CatchUp {
                requests,
                tokens,
                seconds: each * requests as f64 + token * tokens as f64,
            });
        }
        costs
    }

    #[test]
    fn a_few_tokens_do_not_make_a_prompt_dear() {
        let all = [(1, 60), (1, 5), (2, 9), (1, 4), (3, 14), (1, 6), (2, 10)];
        let gpu = measured(&all, 2e-4, 1e-6);
        assert!((gpu.seconds(60).unwrap() - 2.6e-4).abs() < 1e-9);
        let cpu = measured(&all, 0.0, 1e-4);
        assert!((cpu.seconds(60).unwrap() - 6e-3).abs() < 1e-9);
        assert_eq!(cpu.seconds(0), Some(0.0));
    }

    #[test]
    fn measurements_that_are_all_alike_are_taken_for_the_cost_of_tokens() {
        assert_eq!(CatchingUp::default().seconds(5), None);
        for took in [&[(1, 50)][..], &[(1, 50), (2, 100), (1, 50)]] {
            let costs = measured(took, 0.0, 0.02);
            assert!((costs.seconds(100).unwrap() - 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn noise_makes_no_part_negative() {
        let mut costs = CatchingUp::default();
        for (tokens, seconds) in [(5, 1.0), (50, 0.9), (5, 1.1), (50, 1.0), (100, 0.8)] {
            costs.record(CatchUp {
                requests: 1,
                tokens,
                seconds,
            });
        }
        let (few, many) = (costs.seconds(1).unwrap(), costs.seconds(1000).unwrap());
        assert!(0.5 < few && few <= many && many < 1.5, "{few} {many}");
        // What took longer with every token has no part that does not.
        let mut costs = measured(&[(1, 10)], 0.0, 0.1);
        costs.record(CatchUp {
            requests: 1,
            tokens: 100,
            seconds: 20.0,
        });
        assert!(costs.seconds(1).unwrap() > 0.0);
    }

    #[test]
    fn a_machine_that_slows_down_is_believed() {
        let mut costs = measured(&[(1, 60), (1, 5), (1, 40)], 1e-3, 1e-4);
        for _ in 0..40 {
            for tokens in [60, 5, 40] {
                costs.record(CatchUp {
                    requests: 1,
                    tokens,
                    seconds: 2e-3 + 2e-4 * tokens as f64,
                });
            }
        }
        assert!((costs.seconds(100).unwrap() / 22e-3 - 1.0).abs() < 0.02);
    }
}
