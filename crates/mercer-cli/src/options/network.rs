//! Which tensors of a network are parameters.

use super::parse_bytes;
use mercer::spec::ParameterSpec;
use std::path::PathBuf;

/// Help of `--net`, shared by all commands.
pub(crate) const NET: &str = "ONNX model of the network";

/// Help of `--arch`, likewise.
pub(crate) const ARCH: &str = "Network architecture, described in TOML (see `mercer help train`)";

/// Help of `--params`, likewise.
pub(crate) const PARAMS: &str = "Only these parameters or layers, as in head* (repeatable; may contain * and ?)";

/// Help of `--weights`, likewise.
const WEIGHTS: &str = "Weights of a checkpoint, instead of those in the network's file";

/// The weights of a network, and which tensors count as parameters.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct ParameterOptions {
    #[arg(long, value_name = "FILE.safetensors", help = WEIGHTS)]
    weights: Option<PathBuf>,

    #[command(flatten)]
    tensors: TensorOptions,
}

/// The weights of a network at several times, and which tensors count as parameters.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct CheckpointOptions {
    #[arg(long, value_name = "FILE.safetensors", help = WEIGHTS, num_args = 1..)]
    pub(crate) weights: Vec<PathBuf>,

    #[command(flatten)]
    tensors: TensorOptions,
}

/// Which tensors count as parameters.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Network")]
struct TensorOptions {
    /// Count tensors with this name as parameters (repeatable; may contain * and ?)
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Count tensors with this name as constants (repeatable; may contain * and ?)
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Separate parameters that the exporter merged because their values are equal
    #[arg(long)]
    unmerge: bool,

    #[command(flatten)]
    import: ImportOptions,
}

/// Limits for reading a network.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct ImportOptions {
    /// Memory limit for importing the network [default: 16 × the file, at least 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub(crate) import_limit: Option<usize>,
}

impl ParameterOptions {
    /// As data.
    pub(crate) fn spec(&self) -> ParameterSpec {
        ParameterSpec { weights: self.weights.clone(), ..self.tensors.spec() }
    }
}

impl CheckpointOptions {
    /// As data, without the weights.
    pub(crate) fn spec(&self) -> ParameterSpec {
        self.tensors.spec()
    }
}

impl TensorOptions {
    fn spec(&self) -> ParameterSpec {
        ParameterSpec {
            weights: None,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            unmerge: self.unmerge,
            import_limit: self.import.import_limit,
        }
    }
}
