//! Retrieval quality of codes, by length.
//!
//! Every query ranks the items by the distance between codes, truncated to the first numbers. Items of the query's
//! class are relevant. *Precision at m* is the share of relevant items among the first `m`; *average precision* is the
//! mean, over the relevant items, of the precision at the rank of each, and its mean over queries is the mAP. Ordered
//! codes can be truncated anywhere, which is the purpose of neural eigenmaps (arXiv 2210.12637).
//!
//! ```
//! use mercer_run::Context;
//! use mercer_spectral::retrieval::{Codes, retrieval};
//!
//! let codes = ndarray::array![[0.0, 0.0], [0.1, 1.0], [1.0, 0.0], [1.1, 1.0]];
//! let items = Codes { codes: codes.view(), classes: &[0, 0, 1, 1] };
//! let query = ndarray::array![[0.05, 0.5]];
//! let queries = Codes { codes: query.view(), classes: &[0] };
//! let found = retrieval(items, queries, &[1, 2], 2, &Context::new())?;
//! assert_eq!((found[0].length, found[0].precision), (1, 1.0));
//! # Ok::<(), mercer_spectral::SpectralError>(())
//! ```

use crate::error::{Result, SpectralError};
use mercer_linalg::gemm;
use mercer_run::Context;
use ndarray::ArrayView2;
use rayon::prelude::*;
use serde::Serialize;

/// Codes with the classes of their items.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    /// `items × length`.
    pub codes: ArrayView2<'a, f32>,
    /// One per item.
    pub classes: &'a [usize],
}

/// Retrieval quality at one code length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Retrieval {
    /// The length to which codes are truncated.
    pub length: usize,
    /// The mean precision among the first `m` items.
    pub precision: f64,
    /// The mean average precision.
    pub mean_average_precision: f64,
}

/// Queries processed at a time.
const BLOCK: usize = 64;

/// Ranks the items for every query, for every length of codes; `first` is `m`. Ties are broken by the order of the
/// items.
///
/// # Errors
/// [`SpectralError::Setting`] if sizes do not match, or there are no items or queries.
pub fn retrieval(
    items: Codes<'_>,
    queries: Codes<'_>,
    lengths: &[usize],
    first: usize,
    context: &Context,
) -> Result<Vec<Retrieval>> {
    let width = items.codes.ncols();
    let fits = |codes: &Codes<'_>| codes.codes.nrows() == codes.classes.len() && !codes.classes.is_empty();
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if !fits(&items) || !fits(&queries) || queries.codes.ncols() != width || longest > width || first == 0 {
        return Err(SpectralError::Setting(format!(
            "cannot evaluate retrieval for {} items and {} queries with codes of {width} and {} numbers at lengths {lengths:?}",
            items.codes.nrows(),
            queries.codes.nrows(),
            queries.codes.ncols()
        )));
    }
    let (all, asked) = (items.codes.as_standard_layout(), queries.codes.as_standard_layout());
    let (all, asked) = (all.as_slice().unwrap_or(&[]), asked.as_slice().unwrap_or(&[]));
    let one = |&length: &usize| {
        let blocks: Vec<(f64, f64)> = queries
            .classes
            .par_chunks(BLOCK)
            .enumerate()
            .map(|(block, classes)| {
                context.check()?;
                let codes = &asked[block * BLOCK * width..];
                Ok(rank((all, items.classes), (codes, classes), width, length, first))
            })
            .collect::<Result<_>>()?;
        let count = queries.classes.len() as f64;
        let sum = |part: fn(&(f64, f64)) -> f64| blocks.iter().map(part).sum::<f64>() / count;
        Ok(Retrieval { length, precision: sum(|s| s.0), mean_average_precision: sum(|s| s.1) })
    };
    lengths.iter().map(one).collect()
}

/// The sums of both measures over some queries.
fn rank(
    (items, item_classes): (&[f32], &[usize]),
    (queries, classes): (&[f32], &[usize]),
    width: usize,
    length: usize,
    first: usize,
) -> (f64, f64) {
    let n_items = item_classes.len();
    let mut products = vec![0.0; classes.len() * n_items];
    gemm([classes.len(), n_items, length], (queries, width, 1), (items, 1, width), false, &mut products);
    let squares: Vec<f32> =
        items.chunks_exact(width).map(|code| code[..length].iter().map(|x| x * x).sum::<f32>()).collect();
    let (mut precision, mut average) = (0.0, 0.0);
    let mut order: Vec<u32> = Vec::with_capacity(n_items);
    for (products, class) in products.chunks_exact(n_items).zip(classes) {
        // ‖q − c‖² up to ‖q‖², which does not change the order.
        let distance = |item: u32| squares[item as usize] - 2.0 * products[item as usize];
        order.clear();
        order.extend(0..n_items as u32);
        order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
        let (mut found, mut sum) = (0usize, 0.0);
        for (place, &item) in order.iter().enumerate() {
            if item_classes[item as usize] == *class {
                found += 1;
                sum += found as f64 / (place + 1) as f64;
            }
            if place + 1 == first.min(n_items) {
                precision += found as f64 / (place + 1) as f64;
            }
        }
        average += if found > 0 { sum / found as f64 } else { 0.0 };
    }
    (precision, average)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn ranks_are_those_of_the_distances() {
        // Items at 0, 1, 2, 3 of classes 0, 1, 0, 1; a query of class 0 at 0.4 sees 0 1 0 1, one of class 1 at 3.1 sees
        // 1 0 1 0.
        let (items, queries) = (array![[0.0], [1.0], [2.0], [3.0f32]], array![[0.4], [3.1f32]]);
        let items = Codes { codes: items.view(), classes: &[0, 1, 0, 1] };
        let queries = Codes { codes: queries.view(), classes: &[0, 1] };
        let found = retrieval(items, queries, &[1], 2, &Context::new()).unwrap()[0];
        assert_eq!(found.precision, 0.5);
        // Both: relevant at places 1 and 3.
        assert!((found.mean_average_precision - (1.0 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
        assert!(retrieval(items, queries, &[2], 2, &Context::new()).is_err());
        assert!(retrieval(items, Codes { classes: &[0], ..queries }, &[1], 2, &Context::new()).is_err());
    }

    /// Only the second number distinguishes the classes.
    #[test]
    fn longer_codes_know_more() {
        let codes = array![[0.0, 0.0], [0.1, 5.0], [0.2, 0.0], [0.3, 5.0], [0.4, 0.0], [0.5f32, 5.0]];
        let items = Codes { codes: codes.view(), classes: &[0, 1, 0, 1, 0, 1] };
        let found = retrieval(items, items, &[1, 2], 3, &Context::new()).unwrap();
        assert_eq!(found[1], Retrieval { length: 2, precision: 1.0, mean_average_precision: 1.0 });
        assert!(found[0].mean_average_precision < 0.8);
    }
}
