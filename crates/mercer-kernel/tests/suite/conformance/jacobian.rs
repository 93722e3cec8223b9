//! Tangent kernels from explicit Jacobians: nothing but the reverse pass and loops.

use super::networks::Case;
use mercer_kernel::empirical::layer_names;
use mercer_net::network::default_logits;
use mercer_net::run::{Keep, Reverse, Target, Workspace};

/// Which tangent kernel is expected.
#[derive(Clone)]
pub(crate) struct Tangents {
    /// The outputs whose gradients are compared, as weights of the network's outputs.
    pub(crate) rows: Vec<Vec<f64>>,
    /// All pairs of them, or equal ones summed.
    pub(crate) full: bool,
    /// The only layer whose parameters count, if it is not all.
    pub(crate) layer: Option<String>,
    /// Whether each value is divided by the square roots of the diagonal.
    pub(crate) normalised: bool,
}

impl Tangents {
    /// All outputs, all parameters.
    pub(crate) fn all(outputs: usize, full: bool) -> Self {
        let row = |at| (0..outputs).map(|to| if to == at { 1.0 } else { 0.0 }).collect();
        Self { rows: (0..outputs).map(row).collect(), full, layer: None, normalised: false }
    }
}

/// `[samples, outputs, parameters]`: the gradient of every output of every sample, and the layer of every parameter.
pub(crate) struct Jacobian {
    data: Vec<f64>,
    layers: Vec<String>,
    samples: usize,
    outputs: usize,
}

impl Jacobian {
    pub(crate) fn new(case: &Case) -> Self {
        let graph = case.network.graph(&case.shapes()).expect("a graph");
        let weights = case.network.weights::<f64>(&graph);
        let (samples, outputs) = (case.samples, case.n_outputs());
        let mut workspace = Workspace::new(graph.clone(), &Keep::All);
        workspace.forward(&weights, &[&case.data], samples).expect("runs");
        // Kernels are of the logits where nobody names an output.
        let (output, _) = default_logits(&graph).expect("an output");
        let mut reverse = Reverse::new(graph.clone(), Target { output, ..Target::all(&graph) });
        let eye = |at: usize| if at / outputs % outputs == at % outputs { 1.0 } else { 0.0 };
        let seeds: Vec<f64> = (0..samples * outputs * outputs).map(eye).collect();
        reverse.per_sample(&workspace, &weights, &seeds, outputs);
        let names = layer_names(&graph);
        let sizes: Vec<usize> = graph.parameters().iter().map(|&id| graph.value(id).meta.numel()).collect();
        let layers = names.iter().zip(&sizes).flat_map(|(name, &size)| vec![name.clone(); size]).collect();
        let mut data = Vec::new();
        for row in 0..samples * outputs {
            for (at, &size) in sizes.iter().enumerate() {
                let gradient = reverse.gradient(at);
                match gradient.get(row * size..(row + 1) * size) {
                    Some(own) => data.extend_from_slice(own),
                    None => data.resize(data.len() + size, 0.0),
                }
            }
        }
        Self { data, layers, samples, outputs }
    }

    /// The Gram matrix of the samples.
    pub(crate) fn gram(&self, of: &Tangents) -> Vec<f64> {
        let width = self.layers.len();
        let counts: Vec<bool> =
            self.layers.iter().map(|own| of.layer.as_ref().is_none_or(|only| only == own)).collect();
        let mut rows = Vec::new();
        for sample in 0..self.samples {
            for weights in &of.rows {
                let mut row = vec![0.0; width];
                for (output, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                    let own = &self.data[(sample * self.outputs + output) * width..][..width];
                    row.iter_mut()
                        .zip(own)
                        .zip(&counts)
                        .for_each(|((to, x), &c)| *to += if c { weight * x } else { 0.0 });
                }
                rows.push(row);
            }
        }
        let per_sample = of.rows.len();
        let dot = |i: usize, j: usize| rows[i].iter().zip(&rows[j]).map(|(x, y)| x * y).sum::<f64>();
        let mut gram: Vec<f64> = if of.full {
            let n = rows.len();
            (0..n * n).map(|at| dot(at / n, at % n)).collect()
        } else {
            let n = self.samples;
            let sum = |at: usize| (0..per_sample).map(|c| dot(at / n * per_sample + c, at % n * per_sample + c)).sum();
            (0..n * n).map(sum).collect()
        };
        if of.normalised {
            let n = gram.len().isqrt();
            // An output without a gradient, as a logit behind a dead unit, has no direction.
            let scale = |x: f64| if x > 0.0 { 1.0 / x.sqrt() } else { 0.0 };
            let scales: Vec<f64> = (0..n).map(|at| scale(gram[at * n + at])).collect();
            gram.iter_mut().enumerate().for_each(|(at, x)| *x *= scales[at / n] * scales[at % n]);
        }
        gram
    }
}
