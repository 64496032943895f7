//! `tandem completions`: arguments completed in a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tandem", &mut script);
    Output::new().bytes(&script)
}
