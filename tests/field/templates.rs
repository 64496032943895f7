//! Prompts are laid out as the model's own template says, and end where the model ends its turn.
