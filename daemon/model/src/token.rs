//! What text is made of here, in one word for the whole engine.

/// Index of a token in a model's vocabulary.
pub type TokenId = u32;
