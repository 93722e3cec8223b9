//! `mercer completions SHELL`.

use crate::arguments::command;
use crate::console::Console;
use mercer::Error;

const EXAMPLES: &str = "\
Examples:
  mercer completions bash > ~/.local/share/bash-completion/completions/mercer
  mercer completions zsh > ~/.zfunc/_mercer
  mercer completions fish > ~/.config/fish/completions/mercer.fish";

/// Print a completion script for your shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// Shell
    shell: clap_complete::Shell,
}

impl CompletionsArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        // Written into memory first, because the generator panics if its writer fails.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "mercer", &mut script);
        console.print(&String::from_utf8_lossy(&script))
    }
}
