//! Which tensors of a network are parameters.

use super::parse_bytes;
use mercer::spec::ParameterSpec;
use std::path::PathBuf;

/// Which tensors count as parameters.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Parameters of the network")]
pub(crate) struct ParameterOptions {
    /// The numbers of this checkpoint instead of the network's own
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,

    /// Count tensors of this name as parameters, too (repeatable; `*` and `?` are wild)
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Count tensors of this name as constants (repeatable; `*` and `?` are wild)
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Count parameters apart that the exporter stored once because their numbers are equal (`mercer info` tells which)
    #[arg(long)]
    unmerge: bool,

    #[command(flatten)]
    pub(crate) import: ImportOptions,
}

/// What reading a network may take.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Parameters of the network")]
pub(crate) struct ImportOptions {
    /// Memory that everything made of the network's file may take, at most; a small file can ask for much
    /// [default: 16 times the file, at least 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) import_limit: Option<usize>,
}

impl ParameterOptions {
    /// As data.
    pub(crate) fn spec(&self) -> ParameterSpec {
        ParameterSpec {
            weights: self.weights.clone(),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            unmerge: self.unmerge,
            import_limit: self.import.import_limit,
        }
    }
}
