//! Generated types of `tandem.v1`.
