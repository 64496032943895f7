//! A model file is served as it asks to be, or refused by name.
