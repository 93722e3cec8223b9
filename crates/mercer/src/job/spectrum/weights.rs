//! The spectrum of a weight.

use super::findings::{DirectionFindings, WeightSpectrum};
use crate::Error;
use crate::spec::WeightMatrix;
use mercer_lens::spectra::{
    against_shuffled, bulk, compare_quantiles, cosine, drift, hill, kind, power_law, principal_angles, shuffled, size,
    squared,
};
use mercer_linalg::thin_svd;
use ndarray::{Array2, s};

/// Values in the tail of a power law, at least.
const LEAST_TAIL: usize = 2;

/// The share of eigenvalues that Hill's estimate uses.
const HILL: f64 = 0.1;

/// Singular vectors among which the directions of the user are looked for, as in the report.
const SPAN: usize = 100;

/// What later checkpoints are compared with.
pub(super) struct FirstWeight {
    matrix: Array2<f64>,
    eigenvalues: Vec<f64>,
    /// The leading right singular vectors, a column each.
    vectors: Array2<f64>,
}

/// The spectrum of a matrix, and what later ones are compared with.
pub(super) fn spectrum(
    weight: &WeightMatrix,
    matrix: Array2<f64>,
    directions: Option<&Array2<f64>>,
    (leading, seed): (usize, u64),
    first: Option<&FirstWeight>,
) -> Result<(WeightSpectrum, FirstWeight), Error> {
    let about = |error| Error::from(error).with_place(&format!("weight {}", weight.name));
    let (rows, columns) = matrix.dim();
    let svd = thin_svd(matrix.view()).map_err(|error| about(error.into()))?;
    let singular = svd.values.to_vec();
    let eigenvalues = squared(&singular, columns);
    let sizes = size(&singular, rows, columns).map_err(about)?;
    let bulk = bulk(&eigenvalues, rows, columns).map_err(about)?;
    let tail = power_law(&eigenvalues, LEAST_TAIL).map_err(about)?;
    let n_hill = ((HILL * eigenvalues.len() as f64) as usize).max(2);
    let hill = match n_hill < eigenvalues.len() {
        true => hill(&eigenvalues, n_hill).map_err(about)?,
        false => None,
    };
    let null = shuffled(matrix.view(), seed).map_err(about)?;
    let null = against_shuffled(&eigenvalues, &null).map_err(about)?;
    let right = svd.right;
    let n_leading = leading.min(right.ncols());
    let vectors = right.slice(s![.., ..n_leading]).to_owned();
    let direction = match directions.filter(|directions| directions.ncols() == columns) {
        Some(directions) => {
            let span = SPAN.min(right.ncols());
            let top = right.slice(s![.., ..span]);
            let first = right.column(0).to_vec();
            let cosines = directions.outer_iter().map(|own| cosine(&own.to_vec(), &first));
            Some(DirectionFindings {
                cosines: cosines.collect::<Result<_, _>>().map_err(about)?,
                angles: degrees(principal_angles(directions.t(), top).map_err(about)?),
                leading: span,
            })
        }
        None => None,
    };
    let compared = match first {
        Some(first) => {
            let probabilities: Vec<f64> = (1..100).map(|percent| f64::from(percent) / 100.0).collect();
            let quantiles = compare_quantiles(&first.eigenvalues, &eigenvalues, &probabilities).map_err(about)?;
            let angles = degrees(principal_angles(first.vectors.view(), vectors.view()).map_err(about)?);
            let drift = drift(first.matrix.view(), matrix.view()).map_err(about)?;
            Some((drift, quantiles.distance, angles.into_iter().reduce(f64::max)))
        }
        None => None,
    };
    let found = WeightSpectrum {
        layer: weight.name.clone(),
        shape: weight.shape.clone(),
        layout: weight.layout,
        rows,
        columns,
        stable_rank: sizes.stable_rank,
        effective_rank: sizes.effective_rank,
        largest: eigenvalues.first().copied().unwrap_or(0.0),
        sigma: bulk.as_ref().map(|bulk| bulk.law.variance().sqrt()),
        edge: bulk.as_ref().map(|bulk| bulk.upper_edge),
        lower_edge: bulk.as_ref().map(|bulk| bulk.lower_edge),
        threshold: bulk.as_ref().map(|bulk| bulk.threshold),
        bulk_distance: bulk.as_ref().map(|bulk| bulk.distance),
        n_spikes: bulk.as_ref().map_or(0, |bulk| bulk.spikes.len()),
        shuffled_edge: null.edge,
        n_above_shuffled: null.n_above,
        alpha: tail.as_ref().map(|tail| tail.alpha),
        alpha_error: tail.as_ref().map(|tail| tail.standard_error),
        x_min: tail.as_ref().map(|tail| tail.x_min),
        n_tail: tail.as_ref().map(|tail| tail.n_tail),
        tail_distance: tail.as_ref().map(|tail| tail.distance),
        hill: hill.as_ref().map(|hill| hill.alpha),
        hill_error: hill.as_ref().map(|hill| hill.standard_error),
        kind: kind(bulk.as_ref(), tail.as_ref()),
        drift: compared.as_ref().map(|(drift, ..)| *drift),
        quantile_distance: compared.as_ref().map(|(_, distance, _)| *distance),
        largest_angle: compared.and_then(|(.., angle)| angle),
        direction,
        eigenvalues: eigenvalues.clone(),
    };
    Ok((found, FirstWeight { matrix, eigenvalues, vectors }))
}

/// Angles in degrees.
pub(super) fn degrees(angles: Vec<f64>) -> Vec<f64> {
    angles.into_iter().map(f64::to_degrees).collect()
}
