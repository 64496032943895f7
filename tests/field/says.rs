//! What Tandem says of itself is true.
