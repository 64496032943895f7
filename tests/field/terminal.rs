//! At the terminal and in scripts: input, output, escape sequences, exit codes, time limits.
