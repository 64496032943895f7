//! Input that is far too large, and calls that are given up, cost the one who sent them and nobody else.
