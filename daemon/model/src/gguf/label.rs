//! How a file's quantization is called.

use tandem_kernels::Format;

use super::Gguf;

/// Mixtures by their number in `general.file_type`: their name, the format that gives it, and what stands in for that where rows
/// are no multiple of its block.
const MIXTURES: &[(u32, &str, Format, Option<Format>)] = &[
    (0, "F32", Format::F32, None),
    (1, "F16", Format::F16, None),
    (2, "Q4_0", Format::Q4_0, None),
    (3, "Q4_1", Format::Q4_1, None),
    (7, "Q8_0", Format::Q8_0, None),
    (8, "Q5_0", Format::Q5_0, None),
    (9, "Q5_1", Format::Q5_1, None),
    (10, "Q2_K", Format::Q2K, Some(Format::IQ4NL)),
    (11, "Q3_K_S", Format::Q3K, Some(Format::IQ4NL)),
    (12, "Q3_K_M", Format::Q3K, Some(Format::IQ4NL)),
    (13, "Q3_K_L", Format::Q3K, Some(Format::IQ4NL)),
    (14, "Q4_K_S", Format::Q4K, Some(Format::Q5_0)),
    (15, "Q4_K_M", Format::Q4K, Some(Format::Q5_0)),
    (16, "Q5_K_S", Format::Q5K, Some(Format::Q5_1)),
    (17, "Q5_K_M", Format::Q5K, Some(Format::Q5_1)),
    (18, "Q6_K", Format::Q6K, Some(Format::Q8_0)),
    (19, "IQ2_XXS", Format::IQ2XXS, Some(Format::IQ4NL)),
    (20, "IQ2_XS", Format::IQ2XS, Some(Format::IQ4NL)),
    (21, "Q2_K_S", Format::Q2K, Some(Format::IQ4NL)),
    (22, "IQ3_XS", Format::IQ3S, Some(Format::IQ4NL)),
    (23, "IQ3_XXS", Format::IQ3XXS, Some(Format::IQ4NL)),
    (24, "IQ1_S", Format::IQ1S, Some(Format::IQ4NL)),
    (25, "IQ4_NL", Format::IQ4NL, None),
    (26, "IQ3_S", Format::IQ3S, Some(Format::IQ4NL)),
    (27, "IQ3_M", Format::IQ3S, Some(Format::IQ4NL)),
    (28, "IQ2_S", Format::IQ2XS, Some(Format::IQ4NL)),
    (29, "IQ2_M", Format::IQ2S, Some(Format::IQ4NL)),
    (30, "IQ4_XS", Format::IQ4XS, Some(Format::IQ4NL)),
    (31, "IQ1_M", Format::IQ1M, Some(Format::IQ4NL)),
    (32, "BF16", Format::BF16, None),
    (36, "TQ1_0", Format::TQ1_0, Some(Format::Q4_0)),
    (37, "TQ2_0", Format::TQ2_0, Some(Format::Q4_0)),
    (38, "MXFP4_MOE", Format::MXFP4, None),
];

/// Added to a file type that was guessed.
const GUESSED: u32 = 1024;

impl Gguf {
    /// How its quantization is called: as `general.file_type` says where the tensors bear that out, since a mixture such as
    /// Q4_K_M has several formats; otherwise by the format that holds the most weights. Empty for a file without tensors.
    #[must_use]
    pub fn quantization(&self) -> String {
        let stated = self.optional_u32("general.file_type").ok().flatten();
        let stated = stated.map(|number| number & !GUESSED);
        let mixture = MIXTURES.iter().find(|(number, ..)| Some(*number) == stated);
        let has = |format: Format| {
            let mut matrices = self.tensors.iter().filter(|tensor| tensor.shape.len() > 1);
            matrices.any(|tensor| tensor.format == format)
        };
        match mixture {
            Some((_, name, format, other)) if has(*format) || other.is_some_and(has) => {
                (*name).to_owned()
            }
            _ => self.dominant_format().map_or_else(String::new, spelled),
        }
    }
}

/// A format as it is called elsewhere, such as `Q4_K`.
fn spelled(format: Format) -> String {
    let name = format!("{format:?}");
    match name.split_once(|c: char| c.is_ascii_digit()) {
        Some((letters, _)) if !name.contains('_') && !matches!(letters, "F" | "BF" | "MXFP") => {
            let (kind, rest) = name.split_at(letters.len() + 1);
            format!("{kind}_{rest}")
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use tandem_kernels::check::blocks::{Random, random_blocks};

    use super::*;
    use crate::testing::{GgufWriter, open};

    fn named(file_type: Option<u32>, tensors: &[(Format, u64)]) -> String {
        let mut file = GgufWriter::new();
        if let Some(number) = file_type {
            file = file.u32("general.file_type", number);
        }
        for (index, (format, rows)) in tensors.iter().enumerate() {
            let bytes = random_blocks(*format, 256 * *rows as usize, &mut Random(1));
            let name = format!("blk.{index}.ffn_down.weight");
            file = file.raw_tensor(&name, &[256, *rows], format.number(), &bytes);
        }
        open(&file.finish()).quantization()
    }

    #[test]
    fn a_mixture_has_its_own_name_and_not_that_of_its_largest_tensor() {
        let mixture = [(Format::Q8_0, 9), (Format::Q4K, 2), (Format::Q6K, 1)];
        assert_eq!(named(Some(15), &mixture), "Q4_K_M");
        assert_eq!(named(Some(15 + GUESSED), &mixture), "Q4_K_M");
        // Rows that are no multiple of 256 leave nothing of the format that gives the name.
        let narrow = [(Format::Q8_0, 9), (Format::Q5_0, 2)];
        assert_eq!(named(Some(15), &narrow), "Q4_K_M");
        assert_eq!(named(Some(3), &[(Format::Q4_1, 4)]), "Q4_1");
    }

    #[test]
    fn a_file_type_that_the_tensors_contradict_is_not_believed() {
        assert_eq!(named(Some(15), &[(Format::F16, 4)]), "F16");
        assert_eq!(
            named(Some(999), &[(Format::Q4K, 4), (Format::Q6K, 1)]),
            "Q4_K"
        );
        assert_eq!(
            named(None, &[(Format::IQ4XS, 4), (Format::Q5_1, 1)]),
            "IQ4_XS"
        );
        assert_eq!(named(Some(2), &[]), "");
    }

    #[test]
    fn formats_are_spelled_as_elsewhere() {
        let spelled = Format::ALL.map(spelled);
        for name in [
            "F32", "BF16", "Q4_0", "Q8_0", "Q2_K", "Q6_K", "IQ4_NL", "IQ2_XXS", "IQ1_M", "TQ1_0",
            "MXFP4",
        ] {
            assert!(
                spelled.iter().any(|other| other == name),
                "{name} of {spelled:?}"
            );
        }
    }
}
