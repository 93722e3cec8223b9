//! A network file, and which of its tensors are parameters.

use crate::Error;
use crate::error::{AboutNetwork, cannot_open, hint_for_budget};
use mercer_data::folder::check_listed;
use mercer_data::read_regular_text;
use mercer_net::arch::Architecture;
use mercer_net::network::{Import, SavedNetwork};
use mercer_net::{NetError, Network};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which tensors count as parameters, and where their values come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ParameterSpec {
    /// A safetensors checkpoint whose values replace those in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// Count tensors of these names as parameters, too (`*` and `?` are wild).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Count tensors of these names as constants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Separate parameters that the exporter merged because their values are equal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unmerge: bool,
    /// Memory limit for importing the network's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import_limit: Option<usize>,
}

/// Size limit for the description of a network.
const LONGEST_DESCRIPTION: u64 = 1 << 20;

impl ParameterSpec {
    /// Whether it changes which tensors are parameters.
    pub fn selects(&self) -> bool {
        !self.include.is_empty() || !self.exclude.is_empty() || self.unmerge
    }

    /// Loads the values of the checkpoint into a network.
    fn load_weights(&self, network: &mut Network) -> Result<(), Error> {
        match &self.weights {
            Some(path) => {
                check_listed(path)?;
                network.load_safetensors(path).map_err(|error| {
                    let text = format!("‹weights› {}: {error}", path.display());
                    Error::of_network(path, error).with_message(text)
                })
            }
            None => Ok(()),
        }
    }
}

/// Loads the values of the checkpoint, if there is one, into a network.
pub(crate) fn load_weights(parameters: &ParameterSpec, network: &mut Network) -> Result<(), Error> {
    parameters.load_weights(network)
}

/// Reads a description, and builds its network with weights from a seed.
pub fn open_architecture(path: &Path, seed: u64, parameters: &ParameterSpec) -> Result<(Architecture, Network), Error> {
    let architecture = read_architecture(path)?;
    let mut network =
        architecture.build_within(seed, parameters.import_limit).map_err(|error| about_architecture(path, &error))?;
    parameters.load_weights(&mut network)?;
    Ok((architecture, network))
}

/// Reads a description.
pub fn read_architecture(path: &Path) -> Result<Architecture, Error> {
    let text = read_regular_text(path, LONGEST_DESCRIPTION).map_err(|error| cannot_open(path.display(), &error))?;
    Architecture::from_toml(&text).map_err(|error| about_architecture(path, &error))
}

fn about_architecture(path: &Path, error: &NetError) -> Error {
    let hint = match error {
        NetError::OverBudget { .. } => hint_for_budget(),
        _ => "`mercer train --help` shows an example".to_owned(),
    };
    Error::new(format!("{}: {error}", path.display())).hint(hint)
}

/// Opens an ONNX file.
pub fn open_network(path: &Path, parameters: &ParameterSpec) -> Result<Network, Error> {
    if path.extension().is_some_and(|extension| {
        matches!(extension.to_str(), Some("pt" | "pth" | "ckpt" | "safetensors" | "h5" | "keras"))
    }) && path.exists()
    {
        return Err(Error::new(format!("{}: this is not an ONNX model", path.display()))
            .hint("export the network with torch.onnx.export(model, example, \"model.onnx\") or tf2onnx"));
    }
    check_listed(path)?;
    let import = Import { limit: parameters.import_limit, ..Import::default() };
    let mut network = Network::import(path, &import).about(path)?;
    if parameters.unmerge {
        network.unmerge().about(path)?;
    }
    parameters.load_weights(&mut network)?;
    if parameters.include.is_empty() && parameters.exclude.is_empty() {
        return Ok(network);
    }
    if parameters.weights.is_some() {
        // Names select tensors of a file, so the values of the checkpoint are written into a file first.
        network = Network::import_bytes(&network.to_onnx_bytes().about(path)?, &import).about(path)?;
    }
    for (flag, include, exclude) in
        [("‹include›", &parameters.include[..], &[][..]), ("‹exclude›", &[], &parameters.exclude[..])]
    {
        network.select_parameters(include, exclude).map_err(|error| match error {
            NetError::Unknown { .. } => Error::new(format!("{flag}: {error}"))
                .hint(format!("`mercer info {} -v` lists all names", path.display())),
            other => Error::of_network(path, other),
        })?;
    }
    Ok(network)
}

/// A network from a file, in the form saved within a result: the bytes of the file, unless its values come from a
/// checkpoint.
pub fn saved_network(path: &Path, parameters: &ParameterSpec, network: &Network) -> Result<SavedNetwork, Error> {
    let mut saved = match &parameters.weights {
        None => SavedNetwork::of_file(path, network, parameters.import_limit).about(path)?,
        Some(_) => {
            // The tensors are stored as in the file; the choice of parameters is stored beside the bytes.
            let plain =
                ParameterSpec { include: Vec::new(), exclude: Vec::new(), unmerge: false, ..parameters.clone() };
            SavedNetwork::new(open_network(path, &plain)?.to_onnx_bytes().about(path)?)
        }
    };
    saved.limit = parameters.import_limit;
    Ok(saved.parameters(&parameters.include, &parameters.exclude, parameters.unmerge))
}
