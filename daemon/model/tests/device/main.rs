//! The device under test on small random models: every format, every architecture, every shape of a step.

mod case;
#[path = "../common/mod.rs"]
mod common;
mod edges;

use case::{Case, LLAMA};
use tandem_model::testing::{Format, TinyModel};

/// A test for each case, so that what is broken is named.
macro_rules! cases {
    ($($name:ident: $case:expr, $format:expr;)*) => {
        $(#[test]
        fn $name() {
            let format: fn(&str) -> Format = $format;
            $case.check(format);
        })*
    };
}

mod formats {
    use super::*;

    cases! {
        f32: Case::of(LLAMA), |_| Format::F32;
        f16: Case::of(LLAMA), |_| Format::F16;
        bf16: Case::of(LLAMA), |_| Format::BF16;
        q4_0: Case::of(LLAMA), |_| Format::Q4_0;
        q4_1: Case::of(LLAMA), |_| Format::Q4_1;
        q5_0: Case::of(LLAMA), |_| Format::Q5_0;
        q5_1: Case::of(LLAMA), |_| Format::Q5_1;
        q8_0: Case::of(LLAMA), |_| Format::Q8_0;
        q2_k: Case::of(LLAMA), |_| Format::Q2K;
        q3_k: Case::of(LLAMA), |_| Format::Q3K;
        q4_k: Case::of(LLAMA), |_| Format::Q4K;
        q5_k: Case::of(LLAMA), |_| Format::Q5K;
        q6_k: Case::of(LLAMA), |_| Format::Q6K;
    }
}

/// Formats that candle does not compute with: on Metal they are refused.
mod rare_formats {
    use super::*;

    cases! {
        iq4_nl: Case::of(LLAMA), |_| Format::IQ4NL;
        iq4_xs: Case::of(LLAMA), |_| Format::IQ4XS;
        iq3_s: Case::of(LLAMA), |_| Format::IQ3S;
        iq3_xxs: Case::of(LLAMA), |_| Format::IQ3XXS;
        iq2_s: Case::of(LLAMA), |_| Format::IQ2S;
        iq2_xs: Case::of(LLAMA), |_| Format::IQ2XS;
        iq2_xxs: Case::of(LLAMA), |_| Format::IQ2XXS;
        iq1_m: Case::of(LLAMA), |_| Format::IQ1M;
        iq1_s: Case::of(LLAMA), |_| Format::IQ1S;
        tq1_0: Case::of(LLAMA), |_| Format::TQ1_0;
        tq2_0: Case::of(LLAMA), |_| Format::TQ2_0;
        mxfp4: Case::of(LLAMA), |_| Format::MXFP4;
    }
}

/// Matrices of one layer in different formats, as mixtures such as Q4_K_M have them.
mod mixtures {
    use super::*;

    cases! {
        values_and_down_in_more_bits: Case::of(LLAMA), |name| match name {
            name if name.contains("attn_v") || name.contains("ffn_down") => Format::Q6K,
            _ => Format::Q4K,
        };
        gate_and_up_differ: Case::of(LLAMA), |name| match name {
            name if name.contains("ffn_up") => Format::Q4_1,
            name if name.contains("attn_k") => Format::Q5_0,
            _ => Format::Q4_0,
        };
    }
}

/// Biases (qwen2), norms of heads (qwen3, gemma3), and a window, norms behind, GELU and another angle (gemma3); as halves, so
/// that little else than the architecture can be off.
mod architectures {
    use super::*;

    const fn of(architecture: &'static str, layers: usize) -> Case {
        Case::of(TinyModel {
            architecture,
            layers,
            width: 64,
            inner: 192,
            heads: 4,
            ..LLAMA
        })
    }

    cases! {
        llama: of("llama", 2), |_| Format::F16;
        qwen2: of("qwen2", 2), |_| Format::F16;
        qwen3: of("qwen3", 2), |_| Format::F16;
        // Layers with a window and, the sixth, one without.
        gemma3: of("gemma3", 7), |_| Format::F16;
        gemma3_quantized: of("gemma3", 7), |_| Format::Q8_0;
    }
}

/// Heads and extents that kernels divide unevenly.
mod extents {
    use super::*;

    const fn of(width: usize, inner: usize, heads: usize, kv_heads: usize) -> Case {
        Case::of(TinyModel {
            width,
            inner,
            heads,
            kv_heads,
            ..LLAMA
        })
    }

    cases! {
        one_head_of_256: of(256, 512, 1, 1), |_| Format::F16;
        seven_heads_share_a_key: of(224, 448, 14, 2), |_| Format::F16;
        twenty_heads_share_a_key: of(160, 320, 20, 1), |_| Format::F16;
        as_many_keys_as_heads: of(96, 192, 12, 12), |_| Format::F16;
        three_heads_of_128: of(384, 512, 3, 1), |_| Format::F16;
        half_a_step_of_inputs_q4_0: of(96, 160, 4, 2), |_| Format::Q4_0;
        half_a_step_of_inputs_q4_1: of(96, 160, 4, 2), |_| Format::Q4_1;
        half_a_step_of_inputs_q5_0: of(96, 160, 4, 2), |_| Format::Q5_0;
        half_a_step_of_inputs_q8_0: of(96, 160, 4, 2), |_| Format::Q8_0;
        a_quarter_of_a_step_of_inputs: of(48, 80, 6, 2), |_| Format::F16;
        a_long_text: Case { prompt: 1100, ..of(32, 64, 4, 2) }, |_| Format::F16;
    }
}

/// So many outputs that a device's larger shapes of products are chosen: on GPUs of about 130 multiprocessors these two sizes,
/// and the small ones above, come by all shapes of the `cuda` backend.
mod many_outputs {
    use super::*;

    const fn of(inner: usize, vocabulary: usize) -> Case {
        Case {
            vocabulary,
            ..Case::of(TinyModel {
                layers: 1,
                inner,
                ..LLAMA
            })
        }
    }

    const MOST: Case = of(6144, 8195);
    const MORE: Case = of(512, 3000);

    cases! {
        most_q4_0: MOST, |_| Format::Q4_0;
        most_q4_1: MOST, |_| Format::Q4_1;
        most_q8_0: MOST, |_| Format::Q8_0;
        most_f16: MOST, |_| Format::F16;
        more_q4_0: MORE, |_| Format::Q4_0;
        more_q4_1: MORE, |_| Format::Q4_1;
        more_q8_0: MORE, |_| Format::Q8_0;
        more_f16: MORE, |_| Format::F16;
    }
}
