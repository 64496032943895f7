//! The ways of splitting text that model families were trained with, by their names in GGUF files.

use super::error::TokenizerError;
use super::split::Stage;

/// How one family prepares text for BPE.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    pub(super) stages: Vec<Stage>,
    /// A word that is itself a token is taken whole, even where merges would not build it.
    pub(super) whole_words: bool,
    /// Prompts begin with the beginning-of-sequence token where the file does not say.
    pub(super) adds_bos: bool,
}

struct Family {
    names: &'static [&'static str],
    stages: &'static [&'static str],
    whole_words: bool,
    adds_bos: bool,
}

const ONE_DIGIT: &str = r"\p{N}";
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|(?<run>\s+)";
const LLAMA3: &str = r"'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|(?<run>\s+)";
const QWEN2: &str = r"'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|(?<run>\s+)";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|(?<run>\s+)";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|(?<run>\s+)";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|(?<run>\s+)"##;

const FAMILIES: [Family; 11] = [
    Family {
        names: &[
            "smollm",
            "starcoder",
            "refact",
            "command-r",
            "codeshell",
            "exaone",
            "minerva-7b",
        ],
        stages: &[ONE_DIGIT, GPT2],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["gpt-2", "phi-2", "mpt", "olmo", "jais", "granite-docling"],
        stages: &[GPT2],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
        ],
        stages: &[LLAMA3],
        whole_words: true,
        adds_bos: true,
    },
    Family {
        names: &["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"],
        stages: &[LLAMA3],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["qwen2", "stablelm2", "deepseek-r1-qwen", "megrez"],
        stages: &[QWEN2],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["tekken"],
        stages: &[TEKKEN],
        whole_words: true,
        adds_bos: true,
    },
    Family {
        names: &["gpt-4o", "llama4"],
        stages: &[GPT4O],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["deepseek-v3"],
        stages: &[
            r"\p{N}{1,3}",
            "[一-龥\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
            DEEPSEEK3,
        ],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["deepseek-coder"],
        stages: &[
            r"[\r\n]",
            r"\s?\p{L}+",
            r"\s?\p{P}+",
            "[一-龥\u{800}-一가-\u{d7ff}]+",
            ONE_DIGIT,
        ],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["falcon"],
        stages: &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
        whole_words: false,
        adds_bos: false,
    },
    Family {
        names: &["default"],
        stages: &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
        whole_words: false,
        adds_bos: false,
    },
];

impl PreTokenizer {
    /// The one of that name in `tokenizer.ggml.pre`.
    pub(super) fn named(name: &str) -> Result<Self, TokenizerError> {
        let family = FAMILIES.iter().find(|family| family.names.contains(&name));
        let family = family.ok_or_else(|| TokenizerError::UnknownPreTokenizer {
            name: name.to_owned(),
            known: FAMILIES
                .iter()
                .flat_map(|f| f.names)
                .copied()
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        Ok(Self {
            stages: family
                .stages
                .iter()
                .map(|e| Stage::new(e))
                .collect::<Result<_, _>>()?,
            whole_words: family.whole_words,
            adds_bos: family.adds_bos,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::split;
    use super::*;

    fn words<'a>(name: &str, text: &'a str) -> Vec<&'a str> {
        split::words(&PreTokenizer::named(name).unwrap().stages, text)
    }

    #[test]
    fn every_family_builds_and_loses_nothing() {
        let text =
            "Don't SHOUT'S  at 12345 你好ですか\r\n\n\t x½²  <|a|>\u{301} 한국어 if(a){b}//c  ";
        for name in FAMILIES.iter().flat_map(|family| family.names) {
            assert_eq!(words(name, text).concat(), text, "{name}");
        }
    }

    #[test]
    fn families_differ_where_they_should() {
        assert_eq!(words("smollm", "a  12"), ["a", "  ", "1", "2"]);
        assert_eq!(words("gpt-2", "a  12"), ["a", " ", " 12"]);
        assert_eq!(
            words("llama-bpe", "x 12345\n\n y"),
            ["x", " ", "123", "45", "\n\n", " y"]
        );
        assert_eq!(words("qwen2", "x 12"), ["x", " ", "1", "2"]);
        assert_eq!(words("llama-bpe", "DON'T (now"), ["DON", "'T", " (", "now"]);
        assert_eq!(
            words("tekken", "HelloWorld a/b"),
            ["Hello", "World", " a", "/b"]
        );
        assert_eq!(words("gpt-4o", "Don't HELLO's"), ["Don't", " HELLO's"]);
        assert_eq!(words("deepseek-v3", "1234你好a"), ["123", "4", "你好", "a"]);
        assert_eq!(words("default", "a..12345"), ["a", "..", "123", "45"]);
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let text = PreTokenizer::named("nonesuch").unwrap_err().to_string();
        assert!(
            text.contains("`nonesuch`") && text.contains("smollm, starcoder"),
            "{text}"
        );
    }
}
