//! `-o`: where results go. All commands overwrite, or refuse to, by the same rules.

use mercer::job::{Destination, Share};
use std::path::PathBuf;

/// Help of `--out`, shared by all commands.
const OUT: &str = "Where to write: an .npy file or .zarr store for arrays, .html for a report, else a folder";

/// Where an array goes.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFile {
    #[arg(short = 'o', long, value_name = "PATH", help = OUT)]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) force: ForceOption,
}

/// Where the results of a command that writes several files go.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFolder {
    #[arg(short = 'o', long, value_name = "PATH", help = OUT)]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) force: ForceOption,
}

/// Whether results may be replaced.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ForceOption {
    /// Replace existing results
    #[arg(long)]
    pub(crate) force: bool,
}

/// Whether to resume a run.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ResumeOption {
    /// Resume an interrupted run
    #[arg(long, conflicts_with = "force")]
    pub(crate) resume: bool,
}

/// Which part of the work to do.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PartOption {
    /// Compute only one of several equal parts of the kernel matrices, as in 1/4: each of four processes takes one
    #[arg(long, value_name = "I/N", value_parser = parse_share)]
    pub(crate) part: Option<Share>,
}

/// `I/N`, one of several parts.
fn parse_share(text: &str) -> Result<Share, String> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let share = text.split_once('/').and_then(|(part, of)| Some(Share { part: number(part)?, of: number(of)? }));
    share.ok_or_else(|| format!("`{text}` is not a part such as 1/4"))
}

/// Whether to plan without running.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct DryRunOption {
    /// Say what would be done and what it would take, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl OutputFile {
    /// Converts to the library's type.
    pub(crate) fn destination(&self) -> Destination {
        Destination { path: self.out.clone(), force: self.force.force, ..Destination::default() }
    }
}

impl OutputFolder {
    /// Converts to the library's type.
    pub(crate) fn destination(&self) -> Destination {
        Destination { force: self.force.force, ..Destination::new(&self.out) }
    }
}
