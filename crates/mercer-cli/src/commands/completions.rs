//! `mercer completions SHELL`.

use crate::arguments::Arguments;
use crate::console::Console;
use clap::CommandFactory;
use mercer::Error;

const EXAMPLES: &str = "\
Examples:
  mercer completions bash > ~/.local/share/bash-completion/completions/mercer
  mercer completions zsh > ~/.zfunc/_mercer
  mercer completions fish > ~/.config/fish/completions/mercer.fish";

/// Print a script that makes your shell complete mercer's commands and options
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: clap_complete::Shell,
}

impl CompletionsArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        // Into memory first: the generator panics when its writer fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "mercer", &mut script);
        console.print(&String::from_utf8_lossy(&script))
    }
}
