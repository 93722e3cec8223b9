//! A hint for images that are fed to a network unscaled.
//!
//! Nearly all image networks are trained on pixels from 0 to 1 or on standardised pixels, and nearly all image files
//! hold bytes from 0 to 255. A network that is fed bytes still gives numbers, so the mistake is easy to miss. The hint
//! is given only where the first layer takes the bytes unchanged.

use super::Network;
use crate::graph::{Graph, ValueId};
use mercer_data::{DType, Dataset, Preprocess, Result, Step};

/// The number of samples that are searched for a pixel above 1.
const LOOKED_AT: usize = 64;

/// Operators that pass numbers on unchanged.
const MOVES: [&str; 7] = ["Reshape", "Transpose", "Slice", "Concat", "Pad", "Expand", "Gather"];

/// Layers whose outputs scale with their inputs.
const LAYERS: [&str; 3] = ["Conv", "MatMul", "Pool"];

impl Network {
    /// A hint if image bytes go into the network unscaled, the network does not scale them itself, and nothing says
    /// that it was trained that way.
    ///
    /// Samples of two axes or more count as images.
    pub fn scale_hint(&self, inputs: &[Dataset]) -> Result<Option<String>> {
        let shapes: Vec<Vec<usize>> = inputs.iter().map(|input| input.sample_shape().to_vec()).collect();
        // Errors in the shapes are reported where the shapes are needed.
        let Ok(graph) = self.graph(&shapes) else { return Ok(None) };
        for (at, (input, declared)) in inputs.iter().zip(self.inputs()).enumerate() {
            let is_image = input.dtype() == DType::U8 && input.stored_shape().len() > 2;
            if !is_image || declared.is_integer() || scales(input.preprocess()) || !is_raw(&graph, graph.inputs()[at]) {
                continue;
            }
            let trained = self.trained_on().preprocess.as_ref().and_then(|steps| steps.get(at));
            if trained.is_some_and(|steps| !scales(steps)) || !has_large(input)? {
                continue;
            }
            let place = input.place();
            return Ok(Some(match trained {
                Some(_) => format!(
                    "{place} holds bytes from 0 to 255, which go into the network unscaled, but it was trained on scaled pixels (give the --scale, --mean and --std of its training)"
                ),
                None => format!(
                    "{place} holds bytes from 0 to 255, which go into the network unscaled; most networks are trained on pixels from 0 to 1 (--scale 1/255) or on standardised pixels (--mean, --std)"
                ),
            }));
        }
        Ok(None)
    }
}

fn scales(steps: &Preprocess) -> bool {
    steps.steps.iter().any(|step| matches!(step, Step::Scale(_) | Step::Normalise { .. }))
}

/// Whether the input reaches a layer unchanged.
fn is_raw(graph: &Graph, input: ValueId) -> bool {
    let mut moved = vec![false; graph.values().len()];
    moved[input.index()] = true;
    let mut reached = false;
    for node in graph.nodes().iter().filter(|node| !node.inputs.is_empty()) {
        if !node.inputs.iter().any(|id| moved[id.index()]) {
            continue;
        }
        let name = node.op.name();
        if MOVES.contains(&name) {
            moved[node.output.index()] = true;
        } else if LAYERS.contains(&name) {
            reached = true;
        } else {
            return false;
        }
    }
    reached
}

/// Whether one of the first samples has a number above 1; a mask of zeros and ones needs no scale.
fn has_large(input: &Dataset) -> Result<bool> {
    let rows = input.n_samples().min(LOOKED_AT);
    Ok(input.rows::<f32>(0..rows)?.iter().any(|&pixel| pixel > 1.0))
}
