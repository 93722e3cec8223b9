//! `mercer manual DIR`: manual pages.

use crate::arguments::command;
use crate::console::Console;
use crate::output::ForceOption;
use clap::Command;
use clap_mangen::Man;
use mercer::Error;
use mercer::data::{Existing, write_atomic};
use mercer::text::count;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  mercer manual ~/.local/share/man/man1          then: man mercer-eigen-nystrom";

/// Write a manual page for every command
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManualArguments {
    /// Folder for the pages
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    #[command(flatten)]
    force: ForceOption,
}

impl ManualArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::with_code("io", format!("{}: {error}", self.folder.display()));
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        let existing = if self.force.force { Existing::Replace } else { Existing::Refuse };
        let mut command = command();
        command.build();
        let n = write(&command, &self.folder, existing)?;
        console.print(&format!("{} in {}\n", count(n, "page"), self.folder.display()))
    }
}

/// Writes the pages of a command and its subcommands, and returns their number.
fn write(command: &Command, folder: &Path, existing: Existing) -> Result<usize, Error> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    write_atomic(&path, existing, |writer| man.render(writer))?;
    // `help` appears below every command; its page would be empty.
    let below = command.get_subcommands().filter(|command| command.get_name() != "help");
    below.map(|command| write(command, folder, existing)).try_fold(1, |sum, n| Ok(sum + n?))
}
