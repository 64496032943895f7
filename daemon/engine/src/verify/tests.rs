//! The output distribution of verification, worked out branch by branch, and what a seed promises.

mod chi_square;
mod exact;
mod models;
mod outcomes;
mod seeded;
mod tree;
