//! Laplace approximations as folders. The network is not part of it, only its fingerprint.

use super::machine::{Curvature, Laplace};
use super::settings::{Settings, Structure};
use super::target::Target;
use crate::error::{LearnError, Result, setting};
use crate::folder::{FolderReader, FolderWriter};
use mercer_data::Existing;
use mercer_kernel::{FeatureMap, Real};
use mercer_linalg::Scalar;
use mercer_net::Network;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

const FILE: &str = "machine.json";
const FORMAT: &str = "mercer laplace posterior";
const VERSION: u32 = 1;

/// What `machine.json` holds.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    settings: Settings,
    precision: String,
    network: String,
    samples: Vec<Vec<usize>>,
    n_samples: usize,
    log_likelihood: f64,
    squared_norm: f64,
    /// The parameters of a structure that keeps them apart.
    parameters: Vec<String>,
}

impl<T: Real> Laplace<T> {
    /// Writes the machine into a folder, which is made if there is none.
    pub fn save(&self, folder: &Path, existing: Existing) -> Result<()> {
        let writer = FolderWriter::create(folder, FILE, existing)?;
        let mut parameters = Vec::new();
        match &self.curvature {
            Curvature::Dense(dense) => writer.array("curvature", &dense.curvature)?,
            Curvature::Last(last) => writer.array("curvature", &last.curvature)?,
            Curvature::Blocks(blocks) => {
                for (at, block) in blocks.blocks.iter().enumerate() {
                    parameters.push(block.name().to_owned());
                    writer.array(&format!("curvature{at}"), &block.curvature)?;
                    for (side, basis) in [("left", &block.left), ("right", &block.right)] {
                        if let Some(basis) = basis {
                            writer.array(&format!("{side}{at}"), basis)?;
                        }
                    }
                }
            }
        }
        let stored = Stored {
            settings: self.settings.clone(),
            precision: <T as Scalar>::NAME.to_owned(),
            network: self.fingerprint.clone(),
            samples: self.samples.clone(),
            n_samples: self.n_samples,
            log_likelihood: self.log_likelihood,
            squared_norm: self.squared_norm,
            parameters,
        };
        let wrong = |error: serde_json::Error| LearnError::Malformed {
            place: folder.display().to_string(),
            reason: error.to_string(),
        };
        writer.finish(FORMAT, VERSION, serde_json::to_value(stored).map_err(wrong)?)
    }

    /// Reads a machine that was saved, for the same network.
    pub fn load(folder: &Path, network: &Network) -> Result<Self> {
        Self::read(folder, network, None)
    }

    /// As [`load`](Self::load), with the features that it was fitted through.
    pub fn load_features(folder: &Path, network: &Network, map: Arc<dyn FeatureMap<T>>) -> Result<Self> {
        Self::read(folder, network, Some(map))
    }

    fn read(folder: &Path, network: &Network, map: Option<Arc<dyn FeatureMap<T>>>) -> Result<Self> {
        let reader = FolderReader::open(folder, FILE, FORMAT, VERSION)?;
        let wrong = |reason: String| reader.malformed(reason);
        let stored: Stored = reader.content()?;
        let precision = <T as Scalar>::NAME;
        if stored.precision != precision {
            return Err(wrong(format!("was fitted in {}, but is read in {precision}", stored.precision)));
        }
        if map.is_none() && matches!(stored.settings.structure, Structure::Features { .. }) {
            return Err(setting("the structure", stored.settings.structure, "its features are not given"));
        }
        if stored.settings.output.is_none() {
            let graph = network.graph(&stored.samples)?;
            if Target::of(&graph, &stored.settings)?.logits.is_some() {
                let text = "is of the network's probabilities, as those of an earlier version were; fit it again";
                return Err(wrong(text.to_owned()));
            }
        }
        let mut machine = Self::unfitted(network, &stored.samples, &stored.settings, map, &mercer_run::Context::new())?;
        if machine.fingerprint != stored.network {
            return Err(wrong("belongs to another network, or to the same with other parameters".to_owned()));
        }
        let matrix = |name: &str, (rows, columns): (usize, usize)| reader.matrix(name, Some(rows), Some(columns));
        match &mut machine.curvature {
            Curvature::Dense(dense) => dense.curvature = matrix("curvature", dense.curvature.dim())?,
            Curvature::Last(last) => last.curvature = matrix("curvature", last.curvature.dim())?,
            Curvature::Blocks(blocks) => {
                let names: Vec<&str> = blocks.blocks.iter().map(|block| block.name()).collect();
                if names != stored.parameters {
                    return Err(wrong(format!("has the parameters {}", stored.parameters.join(", "))));
                }
                for (at, block) in blocks.blocks.iter_mut().enumerate() {
                    let (right, left) = block.curvature.dim();
                    block.curvature = matrix(&format!("curvature{at}"), (right, left))?;
                    let (has_left, has_right) = block.has_bases();
                    block.left = has_left.then(|| matrix(&format!("left{at}"), (left, left))).transpose()?;
                    block.right = has_right.then(|| matrix(&format!("right{at}"), (right, right))).transpose()?;
                }
            }
        }
        machine.n_samples = stored.n_samples;
        machine.log_likelihood = stored.log_likelihood;
        machine.squared_norm = stored.squared_norm;
        Ok(machine)
    }
}
