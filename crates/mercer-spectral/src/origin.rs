//! Where a kernel or a feature map comes from, so that saved functions can be evaluated later.
//!
//! A folder keeps the [`Recipe`] of its kernel and, if it is a network's, the network's ONNX file as it was. Together they
//! give the same kernel again, which is checked by its identity. Functions of a kernel without an origin can be saved too;
//! whoever loads them has to give the kernel.

use crate::error::{Result, SpectralError};
use mercer_data::{Existing, write_atomic};
use mercer_kernel::{Built, Real, Recipe};
use mercer_net::Network;
use mercer_net::network::Batching;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

const NETWORK: &str = "kernel.onnx";

/// How to build a kernel again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// Which kernel.
    pub recipe: Recipe,
    /// Tensors of the network that count as parameters, too.
    #[serde(default)]
    pub include: Vec<String>,
    /// Tensors of the network that count as constants.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Parameters that the exporter merged count apart.
    #[serde(default)]
    pub unmerge: bool,
    /// The network's ONNX file.
    #[serde(skip)]
    pub network: Option<Arc<Vec<u8>>>,
}

impl Origin {
    /// A kernel, and the bytes of its network's ONNX file if it has one.
    pub fn new(recipe: Recipe, network: Option<Vec<u8>>) -> Self {
        let network = network.map(Arc::new);
        Self { recipe, include: Vec::new(), exclude: Vec::new(), unmerge: false, network }
    }

    /// With another choice of parameters.
    pub fn parameters(self, include: &[String], exclude: &[String]) -> Self {
        Self { include: include.to_vec(), exclude: exclude.to_vec(), ..self }
    }

    /// With merged parameters counted apart.
    pub fn unmerged(self, unmerge: bool) -> Self {
        Self { unmerge, ..self }
    }

    /// The kernel for samples of these shapes.
    pub fn build<T: Real>(&self, shapes: &[Vec<usize>]) -> Result<Built<T>> {
        let network = match &self.network {
            None => None,
            Some(bytes) => {
                let mut network = Network::from_onnx_bytes(bytes, Batching::Samples)?;
                if self.unmerge {
                    network.unmerge()?;
                }
                network.select_parameters(&self.include, &self.exclude)?;
                Some(network)
            }
        };
        Ok(self.recipe.build(network.as_ref(), shapes)?)
    }

    /// Writes the network, and returns the rest.
    pub(crate) fn save(&self, folder: &Path, existing: Existing) -> Result<Value> {
        if let Some(bytes) = &self.network {
            write_atomic(&folder.join(NETWORK), existing, |writer| writer.write_all(bytes))?;
        }
        serde_json::to_value(self).map_err(|error| SpectralError::folder(folder, error.to_string()))
    }

    /// What was saved.
    pub(crate) fn load(folder: &Path, value: &Value) -> Result<Self> {
        let mut origin = Self::deserialize(value).map_err(|error| SpectralError::folder(folder, error.to_string()))?;
        if origin.recipe.needs_network() {
            let path = folder.join(NETWORK);
            let bytes = mercer_data::read_regular(&path, u64::MAX)
                .map_err(|error| SpectralError::folder(&path, error.to_string()))?;
            origin.network = Some(Arc::new(bytes));
        }
        Ok(origin)
    }
}
