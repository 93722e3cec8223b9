//! A network file, and which of its tensors are parameters.

use crate::failure::{AboutNetwork, Failure, cannot_open};
use mercer::net::arch::Architecture;
use mercer::net::{NetError, Network};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Which tensors count as parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, clap::Args)]
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
    #[serde(default)]
    unmerge: bool,
}

impl ParameterOptions {
    /// The names to include and to exclude.
    pub(crate) fn names(&self) -> (&[String], &[String]) {
        (&self.include, &self.exclude)
    }

    /// Whether merged parameters are counted apart.
    pub(crate) fn unmerged(&self) -> bool {
        self.unmerge
    }

    /// Whether anything is said of them.
    pub(crate) fn is_given(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty() || self.unmerge
    }
}

/// Reads a description, and makes its network with the weights of a seed.
pub(crate) fn open_architecture(path: &Path, seed: u64) -> Result<(Architecture, Network), Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| cannot_open(path.display(), &error))?;
    let about =
        |error| Failure::new(format!("{}: {error}", path.display())).hint("`mercer train --help` shows an example");
    let architecture = Architecture::from_toml(&text).map_err(about)?;
    let network = architecture.build(seed).map_err(about)?;
    Ok((architecture, network))
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
    let mut network = Network::from_onnx(path).about(path)?;
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
