//! Laplace approximations as part of a [folder](mercer_data::folder). The network is another part; its fingerprint is
//! checked.

use super::machine::{Curvature, Laplace};
use super::settings::{LaplaceSettings, Structure};
use super::target::Target;
use crate::arrays::Arrays;
use crate::error::{LearnError, Result, setting};
use mercer_data::folder::{Part, PartWriter};
use mercer_kernel::{FeatureMap, Real};
use mercer_net::Network;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The manifest entry.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    settings: LaplaceSettings,
    precision: String,
    network: String,
    samples: Vec<Vec<usize>>,
    n_samples: usize,
    log_likelihood: f64,
    squared_norm: f64,
    /// The parameters of a structure with one block per parameter.
    parameters: Vec<String>,
}

/// The number of outputs of a machine that is part of a folder.
pub(super) fn stored_outputs(part: &Part<'_>, content: &Value, network: &Network) -> Result<usize> {
    let stored: Stored = part.content(content)?;
    let graph = network.graph(&stored.samples)?;
    stored.settings.n_outputs(&graph)
}

impl<T: Real> Laplace<T> {
    /// Writes the machine as part of a folder, and returns its entry for the manifest.
    ///
    /// # Errors
    /// If something cannot be written.
    pub fn write(&self, writer: &PartWriter<'_>) -> Result<Value> {
        let mut parameters = Vec::new();
        match &self.curvature {
            Curvature::Dense(dense) => writer.array("curvature", &dense.curvature)?,
            Curvature::Last(last) => writer.array("curvature", &last.curvature)?,
            Curvature::Sides(sides) => {
                // As blocks of parameters that share their bases; equal parts are stored once.
                for (at, (name, table)) in sides.head().names().zip(&sides.curvatures).enumerate() {
                    parameters.push(name.to_owned());
                    writer.array(&format!("curvature{at}"), table)?;
                    if let Some(left) = sides.left.as_ref().filter(|_| at == 0) {
                        writer.array("left0", left)?;
                    }
                    if let Some(right) = &sides.right {
                        writer.array(&format!("right{at}"), right)?;
                    }
                }
            }
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
            precision: T::NAME.to_owned(),
            network: self.fingerprint.clone(),
            samples: self.samples.clone(),
            n_samples: self.n_samples,
            log_likelihood: self.log_likelihood,
            squared_norm: self.squared_norm,
            parameters,
        };
        Ok(writer.content(&stored)?)
    }

    /// Reads a machine that is part of a folder, for the same network, with its features if it has any.
    ///
    /// # Errors
    /// For files that are missing or damaged, and for another network.
    pub fn read(
        part: &Part<'_>,
        content: &Value,
        network: &Network,
        map: Option<Arc<dyn FeatureMap<T>>>,
    ) -> Result<Self> {
        let wrong = |reason: String| LearnError::from(part.malformed(reason));
        let stored: Stored = part.content(content)?;
        let precision = T::NAME;
        if stored.precision != precision {
            return Err(wrong(format!("was fitted in {}, but is opened in {precision}", stored.precision)));
        }
        if map.is_none() && matches!(stored.settings.structure, Structure::Features { .. }) {
            return Err(setting("the structure", stored.settings.structure, "its features are not given"));
        }
        if stored.settings.output.is_none() {
            let graph = network.graph(&stored.samples)?;
            if Target::new(&graph, &stored.settings)?.logits.is_some() {
                let text = "is a posterior of the network's probabilities, written by an earlier version; fit it again";
                return Err(wrong(text.to_owned()));
            }
        }
        let mut machine = Self::unfitted(network, &stored.samples, &stored.settings, map, None)?;
        if machine.fingerprint != stored.network {
            return Err(wrong("belongs to another network, or to the same network with other parameters".to_owned()));
        }
        let arrays = Arrays(part);
        let matrix = |name: &str, (rows, columns): (usize, usize)| arrays.matrix(name, Some(rows), Some(columns));
        match &mut machine.curvature {
            Curvature::Dense(dense) => dense.curvature = matrix("curvature", dense.curvature.dim())?,
            Curvature::Last(last) => last.curvature = matrix("curvature", last.curvature.dim())?,
            Curvature::Sides(sides) => {
                if !sides.head().names().eq(&stored.parameters) {
                    return Err(wrong(format!("has the parameters {}", stored.parameters.join(", "))));
                }
                let (outputs, inputs) = sides.curvatures[0].dim();
                for (at, table) in sides.curvatures.iter_mut().enumerate() {
                    *table = matrix(&format!("curvature{at}"), table.dim())?;
                }
                if sides.has_bases() {
                    sides.left = Some(matrix("left0", (inputs, inputs))?);
                    // A bias has the basis of the weight, because its factor is a multiple of the weight's.
                    sides.right = Some(matrix("right0", (outputs, outputs))?);
                }
            }
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
