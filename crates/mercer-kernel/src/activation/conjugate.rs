//! The conjugate kernel: the last layer's own part of the tangent kernel of one output.
//!
//! `CK(x, x') = 1 + z·z'` with the features `z` of the last hidden layer, where the 1 comes from the bias (Qadeer et
//! al. 2023, arXiv 2310.18612, equations 28 and 29); without a bias it is `z·z'`. A constant factor between the layer
//! and the output applies to both: `(Wz + b)/T` has `(1 + z·z')/T²`, and `Wz/√h + b` in the NTK parametrisation
//! `1 + z·z'/h` (Wang et al. 2022, arXiv 2211.06506, equation 76, which has no bias). If a mean over positions follows the
//! layer, such as over the image after a 1 × 1 convolution, `z` is the mean of the features. The last layer's part of
//! the trace kernel of C outputs is `C·CK`; for a single output it is `CK`, unless outputs have different factors.

use super::{Activations, LastLayer, Positions};
use crate::empirical::Selection;
use crate::error::Result;
use crate::feature::{Effort, FeatureMap};
use crate::kernel::Real;
use mercer_linalg::simd::dispatch;
use mercer_net::Network;

/// The features of the last hidden layer, and a constant for the bias if there is one.
#[derive(Debug)]
pub struct Conjugate<T> {
    activations: Activations<T>,
    positions: Option<Positions>,
    scale: T,
    bias: Option<T>,
}

impl<T: Real> Conjugate<T> {
    /// The features that enter the last product with a parameter before an output (or any other value; by default the
    /// first output), for samples of these shapes (one per input).
    ///
    /// Biases, constant factors, means over positions, softmax and functions of single numbers may follow the product;
    /// the kernel belongs to the value before such a function. An error names the node where the last layer is not a
    /// product of one feature vector per sample; [`Activations`] of chosen nodes always exist.
    pub fn new(network: &Network, samples: &[Vec<usize>], output: Option<&str>) -> Result<Self> {
        let graph = network.graph(samples)?;
        let selection = Selection { output: output.map(str::to_owned), ..Selection::default() };
        let last = LastLayer::new(&graph, selection.value(&graph)?)?;
        let activations = Activations::of_values(network, graph, vec![last.features])?;
        let bias = last.biases.iter().map(|bias| bias.scale * bias.scale).sum::<f64>().sqrt();
        let bias = Some(T::narrow(bias)).filter(|_| !last.biases.is_empty());
        Ok(Self { activations, positions: last.positions, scale: T::narrow(last.scale), bias })
    }

    /// `z·z'` alone.
    pub fn without_bias(self) -> Self {
        Self { bias: None, ..self }
    }

    /// The name of the feature value.
    pub fn layer(&self) -> &str {
        &self.activations.graph.value(self.activations.values[0]).name
    }

    /// The length of `z`.
    fn width(&self) -> usize {
        self.activations.width() / self.positions.map_or(1, |positions| positions.count.max(1))
    }

    /// The features of a sample: scaled, summed over positions, followed by the bias.
    fn put(&self, value: &[T], row: &mut [T]) {
        let width = self.width();
        let (features, bias) = row.split_at_mut(width);
        dispatch(
            #[inline(always)]
            || match self.positions {
                None => features.iter_mut().zip(value).for_each(|(to, &x)| *to = x),
                Some(Positions { count, innermost: true }) => {
                    let sums =
                        value.chunks_exact(count.max(1)).map(|own| own.iter().fold(T::zero(), |sum, &x| sum + x));
                    features.iter_mut().zip(sums).for_each(|(to, sum)| *to = sum);
                }
                Some(_) => {
                    features.fill(T::zero());
                    for own in value.chunks_exact(width.max(1)) {
                        features.iter_mut().zip(own).for_each(|(to, &x)| *to += x);
                    }
                }
            },
        );
        if self.scale != T::one() {
            features.iter_mut().for_each(|x| *x *= self.scale);
        }
        if let ([to], Some(bias)) = (bias, self.bias) {
            *to = bias;
        }
    }
}

impl<T: Real> FeatureMap<T> for Conjugate<T> {
    fn n_features(&self) -> usize {
        self.width() + usize::from(self.bias.is_some())
    }

    fn features(&self, inputs: &[&[T]], samples: usize, out: &mut [T]) -> Result<()> {
        self.activations.write(inputs, samples, self.n_features(), out, |value, _, row| self.put(value, row))
    }

    fn effort(&self) -> Effort {
        self.activations.effort()
    }

    fn identity(&self) -> serde_json::Value {
        let bias = match self.bias.map(|bias| bias.wide()) {
            None => serde_json::json!(false),
            Some(1.0) => serde_json::json!(true),
            Some(other) => serde_json::json!(other),
        };
        let mut identity = serde_json::json!({
            "kernel": "conjugate", "bias": bias, "scale": self.scale.wide(), "of": self.activations.identity(),
        });
        if let Some(Positions { count, .. }) = self.positions {
            identity["positions"] = count.into();
        }
        identity
    }
}
