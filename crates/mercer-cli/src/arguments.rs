//! The command line as a whole.

use crate::commands::Command;
use crate::options::parse_bytes;
use clap::Parser;
use std::num::NonZeroUsize;

const EXAMPLES: &str = "\
Examples:
  mercer demo                                       train a small network and look at it
  mercer info model.onnx                            what a network is made of
  mercer info data.npz                              what a data set holds
  mercer info gram.zarr                             what a store of Gram matrices holds, checked
  mercer predict --net model.onnx --data data.npz:x --labels data.npz:y
  mercer train --arch cnn.toml --data images.npy --labels digits.npy -o run

Data are .npy, .npz, IDX (also gzipped) and CSV files, written as FILE or FILE:KEY, where KEY is an
array of an .npz file or a column of a CSV file. Results go to standard output and to files,
progress and errors to standard error.

Exit codes: 0 done, 1 a check you asked for failed, 2 an error, 130 interrupted; 101 is a bug of mercer's own.";

/// A workbench for neural kernels: see what is in a trained network, run it, train small ones.
#[derive(Debug, Parser)]
#[command(name = "mercer", version, after_help = EXAMPLES, max_term_width = 110, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Print the result as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Use so many threads; results do not depend on it [default: one per core]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// Use no more memory than this, as in 4GiB [default: three quarters of what is free]
    #[arg(long, global = true, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) memory: Option<usize>,

    /// No progress bar and no notes: only results and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Show everything, also long lists
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}
