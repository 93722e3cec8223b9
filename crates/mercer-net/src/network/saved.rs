//! A network saved as part of something else: a machine, eigenfunctions, a posterior.

use super::{Import, Network};
use crate::error::{NetError, Result};
use mercer_data::folder::{Part, PartWriter};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// The name of the object.
const OBJECT: &str = "network";

/// The bytes of an ONNX file, and the choice of parameters: all that is needed to open the same network again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedNetwork {
    /// Further tensors that count as parameters.
    #[serde(default)]
    pub include: Vec<String>,
    /// Tensors that count as constants.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Whether merged parameters are separated.
    #[serde(default)]
    pub unmerge: bool,
    /// The import limit, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    #[serde(skip)]
    bytes: Arc<Vec<u8>>,
}

impl SavedNetwork {
    /// From the bytes of an ONNX file.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: Arc::new(bytes), ..Self::default() }
    }

    /// From the file of a network, with this limit. Weights in external files are embedded.
    ///
    /// # Errors
    /// [`NetError::Io`] if the file cannot be read.
    pub fn of_file(path: &Path, network: &Network, limit: Option<usize>) -> Result<Self> {
        let bytes = mercer_data::read_regular(path, super::LONGEST_FILE)
            .map_err(|source| NetError::Io { path: path.to_owned(), source })?;
        let alone = Network::import_bytes(&bytes, &Import { limit, ..Import::default() }).is_ok();
        Ok(Self { limit, ..Self::new(if alone { bytes } else { network.to_onnx_bytes()? }) })
    }

    /// With another choice of parameters.
    pub fn parameters(self, include: &[String], exclude: &[String], unmerge: bool) -> Self {
        Self { include: include.to_vec(), exclude: exclude.to_vec(), unmerge, ..self }
    }

    /// The ONNX file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The network.
    pub fn open(&self) -> Result<Network> {
        let mut network = Network::import_bytes(&self.bytes, &Import { limit: self.limit, ..Import::default() })?;
        if self.unmerge {
            network.unmerge()?;
        }
        network.select_parameters(&self.include, &self.exclude)?;
        Ok(network)
    }

    /// Writes the file into a folder, and returns the rest.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, part: &PartWriter<'_>) -> Result<Value, mercer_data::DataError> {
        part.object(OBJECT, |writer| writer.write_all(&self.bytes))?;
        part.content(self)
    }

    /// Reads what was written.
    ///
    /// # Errors
    /// For files that are missing or damaged.
    pub fn read(part: &Part<'_>, content: &Value) -> Result<Self, mercer_data::DataError> {
        let bytes = Arc::new(part.object(OBJECT)?.to_vec());
        Ok(Self { bytes, ..part.content(content)? })
    }
}
