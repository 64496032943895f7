//! The angles of rotary embeddings: their base, and how a file has them scaled to reach further than a model was first trained
//! for.

use super::ModelError;
use crate::gguf::Gguf;

/// Angles of the layers of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub base: f32,
    /// Positions are divided by this.
    pub factor: f32,
    /// Which frequencies that is true of; `None`: all.
    pub yarn: Option<Yarn>,
    /// Factor on turned queries and keys.
    pub magnitude: f32,
}

/// YaRN ([arXiv 2309.00071](https://arxiv.org/abs/2309.00071)): frequencies that turn often within the original context stay
/// as they are, those that never come round are divided by the factor, and in between one goes over into the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yarn {
    /// Positions that the model was first trained for.
    pub original_context: f32,
    /// Frequencies that turn at least so often stay.
    pub beta_fast: f32,
    /// Frequencies that turn at most so often are divided.
    pub beta_slow: f32,
}

impl RopeConfig {
    /// Angles that are not scaled.
    #[must_use]
    pub fn plain(base: f32) -> Self {
        Self {
            base,
            factor: 1.0,
            yarn: None,
            magnitude: 1.0,
        }
    }

    /// Reads how the file scales angles of this base.
    pub(super) fn read(
        gguf: &Gguf,
        architecture: &str,
        base: f32,
        context_length: usize,
    ) -> Result<Self, ModelError> {
        let key = |name: &str| format!("{architecture}.rope.{name}");
        let positive = |name: &str, otherwise: f32| {
            let value = gguf.optional_f32(&key(name))?.unwrap_or(otherwise);
            match value.is_finite() && value > 0.0 {
                true => Ok(value),
                false => Err(ModelError::refused(
                    gguf,
                    &key(name),
                    "it has to be above 0",
                )),
            }
        };
        let kind = gguf.optional_str(&key("scaling.type"))?;
        // The older name of the factor; where both are there they have to agree.
        let factor_of = |name: &str, otherwise: f32| match gguf.optional_f32(&key(name))? {
            // Some writers put 0 where nothing is scaled.
            Some(0.0) => Ok(1.0),
            _ => positive(name, otherwise),
        };
        let old = factor_of("scale_linear", 1.0)?;
        let factor = factor_of("scaling.factor", old)?;
        if old != 1.0 && old != factor {
            let other = "`rope.scaling.factor` says otherwise";
            return Err(ModelError::refused(gguf, &key("scale_linear"), other));
        }
        let magnitude = positive("scaling.attn_factor", 1.0)?;
        let fixed = |name: &str, only: f32| match positive(name, only)? {
            value if value == only => Ok(()),
            _ => Err(ModelError::refused(
                gguf,
                &key(name),
                "other values are not computed with",
            )),
        };
        match kind {
            None | Some("linear") => Ok(Self {
                base,
                factor,
                yarn: None,
                magnitude,
            }),
            Some("none") if factor == 1.0 && magnitude == 1.0 => Ok(Self::plain(base)),
            Some("none") => {
                let other = "a factor that is not 1 stands beside it";
                Err(ModelError::refused(gguf, &key("scaling.type"), other))
            }
            Some("yarn") => {
                fixed("scaling.yarn_ext_factor", 1.0)?;
                fixed("scaling.yarn_attn_factor", 1.0)?;
                let original = match gguf.optional_u32(&key("scaling.original_context_length"))? {
                    None | Some(0) => context_length as f32,
                    Some(positions) => positions as f32,
                };
                let reached = if factor > 1.0 {
                    0.1 * factor.ln() + 1.0
                } else {
                    1.0
                };
                Ok(Self {
                    base,
                    factor,
                    yarn: Some(Yarn {
                        original_context: original,
                        beta_fast: positive("scaling.yarn_beta_fast", 32.0)?,
                        beta_slow: positive("scaling.yarn_beta_slow", 1.0)?,
                    }),
                    magnitude: magnitude * reached,
                })
            }
            Some(_) => {
                let other = "none, linear and yarn are computed";
                Err(ModelError::refused(gguf, &key("scaling.type"), other))
            }
        }
    }

    /// Frequencies by which heads of so many elements turn per position.
    #[must_use]
    pub fn frequencies(&self, head_dim: usize) -> Vec<f32> {
        let frequency = |i: usize| {
            let plain = self.base.powf(-2.0 * i as f32 / head_dim as f32);
            if self.factor == 1.0 {
                return plain;
            }
            let divided = plain / self.factor;
            match &self.yarn {
                None => divided,
                Some(yarn) => {
                    let divide = yarn.share_divided(i, head_dim, self.base);
                    divided * divide + plain * (1.0 - divide)
                }
            }
        };
        (0..head_dim / 2).map(frequency).collect()
    }
}

impl Yarn {
    /// How much of the `i`-th frequency is the divided one.
    fn share_divided(&self, i: usize, head_dim: usize, base: f32) -> f32 {
        let width = head_dim as f32;
        // The frequency, as a number with a fraction, that turns so often within the original context.
        let turning = |times: f32| {
            let turn = self.original_context / (times * 2.0 * std::f32::consts::PI);
            width * turn.ln() / (2.0 * base.ln())
        };
        let low = turning(self.beta_fast).floor().max(0.0);
        let high = turning(self.beta_slow).ceil().min(width - 1.0);
        ((i as f32 - low) / (high - low).max(0.001)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{GgufWriter, open};

    /// What `transformers` computes; `tests/golden/make_rope.py` writes them.
    const GOLDEN: &str = include_str!("../../tests/golden/rope-scaling.json");

    struct Case {
        kind: String,
        rope: RopeConfig,
        head_dim: usize,
        original_context: u32,
        betas: [f32; 2],
        frequencies: Vec<f32>,
    }

    fn cases() -> Vec<Case> {
        let cases: Vec<serde_json::Value> = serde_json::from_str(GOLDEN).unwrap();
        let case = |case: &serde_json::Value| {
            let number = |name: &str| case[name].as_f64().unwrap() as f32;
            let kind = case["kind"].as_str().unwrap().to_owned();
            let yarn = Yarn {
                original_context: number("original_context"),
                beta_fast: number("beta_fast"),
                beta_slow: number("beta_slow"),
            };
            let frequencies = case["frequencies"].as_array().unwrap().iter();
            Case {
                rope: RopeConfig {
                    base: number("base"),
                    factor: number("factor"),
                    yarn: (kind == "yarn").then_some(yarn),
                    magnitude: number("magnitude"),
                },
                head_dim: number("head_dim") as usize,
                original_context: yarn.original_context as u32,
                betas: [yarn.beta_fast, yarn.beta_slow],
                frequencies: frequencies.map(|x| x.as_f64().unwrap() as f32).collect(),
                kind,
            }
        };
        cases.iter().map(case).collect()
    }

    #[test]
    fn frequencies_are_those_of_an_independent_implementation() {
        let cases = cases();
        assert!(cases.len() >= 8);
        for case in cases {
            let file = GgufWriter::new()
                .str("x.rope.scaling.type", &case.kind)
                .f32("x.rope.scaling.factor", case.rope.factor)
                .u32(
                    "x.rope.scaling.original_context_length",
                    case.original_context,
                )
                .f32("x.rope.scaling.yarn_beta_fast", case.betas[0])
                .f32("x.rope.scaling.yarn_beta_slow", case.betas[1]);
            let gguf = open(&file.finish());
            let rope = RopeConfig::read(&gguf, "x", case.rope.base, 99).unwrap();
            let off = (rope.magnitude - case.rope.magnitude).abs();
            assert!(off < 1e-6, "{rope:?} for {:?}", case.rope);
            let magnitude = case.rope.magnitude;
            assert_eq!(RopeConfig { magnitude, ..rope }, case.rope);
            let found = rope.frequencies(case.head_dim);
            assert_eq!(found.len(), case.frequencies.len());
            for (i, (found, expected)) in found.iter().zip(&case.frequencies).enumerate() {
                let error = (found / expected - 1.0).abs();
                assert!(error < 1e-5, "{}, {i}: {found} for {expected}", case.kind);
            }
        }
    }

    #[test]
    fn the_original_context_is_that_of_the_model_where_none_is_named() {
        let file = GgufWriter::new()
            .str("x.rope.scaling.type", "yarn")
            .f32("x.rope.scaling.factor", 4.0);
        let gguf = open(&file.finish());
        let yarn = RopeConfig::read(&gguf, "x", 1e4, 77).unwrap().yarn.unwrap();
        assert_eq!(yarn.original_context, 77.0);
    }
}
