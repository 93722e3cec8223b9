//! A network file, and which of its tensors are parameters.

use crate::failure::{AboutNetwork, Failure, cannot_open, hint_for_budget};
use crate::options::parse_bytes;
use mercer::data::read_regular_text;
use mercer::net::arch::Architecture;
use mercer::net::network::{Import, SavedNetwork};
use mercer::net::{NetError, Network};
use std::path::Path;

/// Which tensors count as parameters.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Parameters of the network")]
pub(crate) struct ParameterOptions {
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

/// A description of a network is a few lines.
pub(crate) const LONGEST_DESCRIPTION: u64 = 1 << 20;

impl ParameterOptions {
    /// Whether anything is said of them.
    pub(crate) fn is_given(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty() || self.unmerge
    }
}

/// The network of a file as it is saved within a result.
pub(crate) fn saved_network(
    path: &Path,
    network: &Network,
    parameters: &ParameterOptions,
) -> Result<SavedNetwork, Failure> {
    let saved = SavedNetwork::of_file(path, network, parameters.import.import_limit).about(path)?;
    Ok(saved.parameters(&parameters.include, &parameters.exclude, parameters.unmerge))
}

/// Reads a description, and makes its network with the weights of a seed.
pub(crate) fn open_architecture(
    path: &Path,
    seed: u64,
    import: ImportOptions,
) -> Result<(Architecture, Network), Failure> {
    let architecture = read_architecture(path)?;
    let network =
        architecture.build_within(seed, import.import_limit).map_err(|error| about_architecture(path, &error))?;
    Ok((architecture, network))
}

/// Reads a description.
pub(crate) fn read_architecture(path: &Path) -> Result<Architecture, Failure> {
    let text = read_regular_text(path, LONGEST_DESCRIPTION).map_err(|error| cannot_open(path.display(), &error))?;
    Architecture::from_toml(&text).map_err(|error| about_architecture(path, &error))
}

fn about_architecture(path: &Path, error: &NetError) -> Failure {
    let hint = match error {
        NetError::OverBudget { .. } => hint_for_budget(),
        _ => "`mercer train --help` shows an example".to_owned(),
    };
    Failure::new(format!("{}: {error}", path.display())).hint(hint)
}

/// Opens an ONNX file.
pub(crate) fn open_network(path: &Path, parameters: &ParameterOptions) -> Result<Network, Failure> {
    if path.extension().is_some_and(|extension| {
        matches!(extension.to_str(), Some("pt" | "pth" | "ckpt" | "safetensors" | "h5" | "keras"))
    }) && path.exists()
    {
        return Err(Failure::new(format!("{}: this is not an ONNX model", path.display()))
            .hint("export the network with torch.onnx.export(model, example, \"model.onnx\") or tf2onnx"));
    }
    let import = Import { limit: parameters.import.import_limit, ..Import::default() };
    let mut network = Network::import(path, &import).about(path)?;
    if parameters.unmerge {
        network.unmerge().about(path)?;
    }
    for (flag, include, exclude) in
        [("--include", &parameters.include[..], &[][..]), ("--exclude", &[], &parameters.exclude[..])]
    {
        network.select_parameters(include, exclude).map_err(|error| match error {
            NetError::Unknown { .. } => Failure::new(format!("{flag}: {error}"))
                .hint(format!("`mercer info {} -v` lists all names", path.display())),
            other => Failure::of_network(path, other),
        })?;
    }
    Ok(network)
}
