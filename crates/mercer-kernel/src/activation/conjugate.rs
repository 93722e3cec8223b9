//! The conjugate kernel: the tangent kernel of one output with respect to the last layer only.
//!
//! `CK(x, x') = 1 + z·z'` with the features `z` of the last hidden layer, the one being the bias (Qadeer et al. 2023, arXiv
//! 2310.18612, equations 28 and 29). It is the same for every output, so the last layer's share of the trace kernel of C
//! outputs is `C·CK`. Constants between the product and the output belong to `z`, as the `1/√h` of the NTK parametrisation
//! (Wang et al. 2022, arXiv 2211.06506, equation 76, which has no bias).

use super::{Activations, LastLayer};
use crate::empirical::Selection;
use crate::error::Result;
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use mercer_linalg::simd::dispatch;
use mercer_net::Network;

/// The features of the last hidden layer, and a one for the bias.
#[derive(Debug)]
pub struct Conjugate<T> {
    activations: Activations<T>,
    scale: T,
    bias: bool,
}

impl<T: Real> Conjugate<T> {
    /// The features that enter the last product with a parameter on the way to an output (or any other value; the first
    /// output if it is not named), for samples of these shapes (one per input).
    ///
    /// Biases, constant factors, softmax and functions of single numbers may follow the product. An error names the node
    /// where the last layer is not a product of one feature vector per sample; [`Activations`] of chosen nodes always exist.
    pub fn new(network: &Network, samples: &[Vec<usize>], output: Option<&str>) -> Result<Self> {
        let graph = network.graph(samples)?;
        let selection = Selection { output: output.map(str::to_owned), ..Selection::default() };
        let last = LastLayer::of(&graph, selection.value(&graph)?)?;
        let activations = Activations::of_values(network, graph, vec![last.features])?;
        Ok(Self { activations, scale: T::of(last.scale), bias: true })
    }

    /// `z·z'` alone, for networks whose last layer has no bias.
    pub fn without_bias(self) -> Self {
        Self { bias: false, ..self }
    }

    /// The name of the value that the features are.
    pub fn layer(&self) -> &str {
        &self.activations.graph.value(self.activations.values[0]).name
    }
}

impl<T: Real> FeatureMap<T> for Conjugate<T> {
    fn n_features(&self) -> usize {
        self.activations.width() + usize::from(self.bias)
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        let stride = self.n_features();
        self.activations.write(inputs, samples, stride, out)?;
        if self.scale != T::one() {
            dispatch(
                #[inline(always)]
                || out.iter_mut().for_each(|x| *x *= self.scale),
            );
        }
        if self.bias {
            out.iter_mut().skip(stride - 1).step_by(stride).for_each(|x| *x = T::one());
        }
        Ok(())
    }

    fn effort(&self) -> Effort {
        self.activations.effort()
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({
            "kernel": "conjugate", "bias": self.bias, "scale": self.scale.wide(), "of": self.activations.identity(),
        })
    }
}
