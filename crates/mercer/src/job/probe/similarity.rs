//! How similar layers, checkpoints, networks and kernels are.

use super::findings::{SimilarityFindings, SimilarityMatrix};
use crate::Error;
use mercer_lens::cka::test_from_grams;
use mercer_run::Context;
use ndarray::Array2;
use rayon::prelude::*;

/// A representation of the samples: a matrix of products.
pub(super) struct View {
    name: String,
    gram: Array2<f64>,
    /// Whether it is a kernel of the user, which is compared as it is.
    is_kernel: bool,
}

impl View {
    /// A layer of a network.
    pub(super) fn layer(network: Option<&str>, node: &str, gram: Array2<f64>) -> Self {
        Self { name: named(network, node), gram, is_kernel: false }
    }

    /// A kernel of a network.
    pub(super) fn kernel(network: Option<&str>, text: &str, gram: Array2<f64>) -> Self {
        Self { name: named(network, text), gram, is_kernel: true }
    }

    /// The Gaussian kernel of the same samples; its length scale is the median distance.
    fn gaussian(mut self) -> Self {
        if self.is_kernel {
            return self;
        }
        let n = self.gram.nrows();
        let squares = self.gram.diag().to_owned();
        let distance = |i: usize, j: usize, product: f64| (squares[i] + squares[j] - 2.0 * product).max(0.0);
        let mut all: Vec<f64> = Vec::with_capacity(n * n.saturating_sub(1) / 2);
        for i in 0..n {
            all.extend((0..i).map(|j| distance(i, j, self.gram[(i, j)])));
        }
        if all.is_empty() {
            return self;
        }
        let middle = all.len() / 2;
        let (_, &mut median, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
        // Equal samples have a constant kernel.
        let scale = if median > 0.0 { 2.0 * median } else { 1.0 };
        for ((i, j), value) in self.gram.indexed_iter_mut() {
            *value = (-distance(i, j, *value) / scale).exp();
        }
        self
    }
}

fn named(network: Option<&str>, name: &str) -> String {
    network.map_or_else(|| name.to_owned(), |network| format!("{network}: {name}"))
}

/// Compares all pairs.
pub(super) fn compare(
    views: Vec<View>,
    permutations: usize,
    seed: u64,
    context: &Context,
) -> Result<SimilarityFindings, Error> {
    let n_samples = views.first().map_or(0, |view| view.gram.nrows());
    let names = views.iter().map(|view| view.name.clone()).collect();
    let linear = matrix(&views, permutations, seed, context)?;
    let views: Vec<View> = views.into_par_iter().map(View::gaussian).collect();
    let gaussian = matrix(&views, permutations, seed, context)?;
    Ok(SimilarityFindings { n_samples, permutations, names, linear, gaussian })
}

fn matrix(views: &[View], permutations: usize, seed: u64, context: &Context) -> Result<SimilarityMatrix, Error> {
    let n = views.len();
    let pairs: Vec<(usize, usize)> = (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
    let one = |&(i, j): &(usize, usize)| -> Result<(Option<f64>, Option<f64>), Error> {
        context.check()?;
        // Nothing is as similar to a representation as itself.
        let tries = if i == j { 0 } else { permutations };
        let found = test_from_grams(views[i].gram.view(), views[j].gram.view(), tries, seed)?;
        Ok((found.cka.debiased, found.p_value.filter(|_| tries > 0)))
    };
    let found = pairs.par_iter().map(one).collect::<Result<Vec<_>, Error>>()?;
    let mut cka = vec![vec![None; n]; n];
    let mut p_values = vec![vec![None; n]; if permutations > 0 { n } else { 0 }];
    for (&(i, j), (value, p)) in pairs.iter().zip(found) {
        (cka[i][j], cka[j][i]) = (value, value);
        if permutations > 0 {
            (p_values[i][j], p_values[j][i]) = (p, p);
        }
    }
    Ok(SimilarityMatrix { cka, p_values })
}
