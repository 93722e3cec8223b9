//! Means and standard deviations of the columns of a table.

use crate::Error;
use mercer_data::{Dataset, Step};
use mercer_run::Context;
use ndarray::{Array1, Array2};

/// Rows that are read at once. Sums go from the first row to the last, so results do not depend on it, nor on threads.
const BLOCK: usize = 4096;

/// Constant columns that a note names.
const NAMED: usize = 5;

/// The data with every column shifted and scaled to mean 0 and standard deviation 1, as a step after those that it has. The standard
/// deviation is that of the samples, with a divisor of N. A constant column is divided by 1.
///
/// # Errors
/// For data that are not a table, and for columns with numbers that are not finite.
pub(super) fn columns(dataset: Dataset, context: &Context) -> Result<Dataset, Error> {
    let place = dataset.place().to_owned();
    let &[width] = dataset.sample_shape() else {
        let text = format!("‹standardise› is for tables; {place} has samples of shape {:?}", dataset.sample_shape());
        return Err(Error::with_code("shape", text).hint("‹mean› and ‹std›, one number or one per channel"));
    };
    let n_samples = dataset.n_samples() as f64;
    let (mut sum, mut low, mut high) = (
        Array1::<f64>::zeros(width),
        Array1::from_elem(width, f64::INFINITY),
        Array1::from_elem(width, f64::NEG_INFINITY),
    );
    each_row(&dataset, context, |row| {
        for (column, &x) in row.iter().enumerate() {
            sum[column] += x;
            (low[column], high[column]) = (low[column].min(x), high[column].max(x));
        }
    })?;
    let mean = sum / n_samples;
    let mut squares = Array1::<f64>::zeros(width);
    each_row(&dataset, context, |row| {
        for (column, &x) in row.iter().enumerate() {
            squares[column] += (x - mean[column]) * (x - mean[column]);
        }
    })?;
    let names = dataset.columns().to_vec();
    let name = |column: usize| names.get(column).cloned().unwrap_or_else(|| column.to_string());
    if let Some(column) = (0..width).find(|&column| !mean[column].is_finite() || !squares[column].is_finite()) {
        let text = format!("‹standardise›: column {} of {place} has numbers that are not finite", name(column));
        return Err(Error::with_code("not-finite", text));
    }
    // Rounding gives a constant column a small deviation, so it is told by its ends.
    let constant: Vec<usize> = (0..width).filter(|&column| low[column] == high[column]).collect();
    let mut std: Vec<f64> = squares.iter().map(|sum| (sum / n_samples).sqrt()).collect();
    for &column in &constant {
        std[column] = 1.0;
    }
    if let Some(column) = (0..width).find(|&column| std[column] == 0.0) {
        let text = format!("‹standardise›: the numbers in column {} of {place} are too small", name(column));
        return Err(Error::new(text).hint("‹scale›, to make them larger"));
    }
    if !constant.is_empty() {
        let mut shown: Vec<String> = constant.iter().take(NAMED).map(|&column| name(column)).collect();
        if constant.len() > NAMED {
            shown.push(format!("and {} more", constant.len() - NAMED));
        }
        let (columns, are) = if constant.len() == 1 { ("column", "is") } else { ("columns", "are") };
        let (shown, divided) = (shown.join(", "), "centred, but not divided by a standard deviation");
        context.note(&format!("{columns} {shown} of {place} {are} constant: {divided}"));
    }
    let steps = dataset.preprocess().clone().then(Step::Normalise { mean: mean.to_vec(), std, axis: 0 });
    Ok(dataset.with_preprocess(steps)?)
}

fn each_row(dataset: &Dataset, context: &Context, mut each: impl FnMut(&[f64])) -> Result<(), Error> {
    for start in (0..dataset.n_samples()).step_by(BLOCK) {
        context.check()?;
        let rows = dataset.rows::<f64>(start..(start + BLOCK).min(dataset.n_samples()))?;
        let rows: Array2<f64> = rows.into_dimensionality().map_err(|error| Error::new(error.to_string()))?;
        rows.outer_iter().for_each(|row| each(&row.to_vec()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn columns_have_mean_zero_and_deviation_one() {
        let table = Array2::from_shape_fn((5000, 3), |(i, j)| match j {
            0 => 1e6 + (i * 7919 % 5000) as f64,
            1 => 0.1,
            _ => -((i % 3) as f64),
        });
        let dataset = Dataset::from_array("t", table.view().into_dyn()).unwrap();
        let context = Context::new();
        let found = columns(dataset, &context).unwrap().read::<f64>().unwrap();
        for column in [0, 2] {
            let own: Vec<f64> = found.axis_iter(ndarray::Axis(0)).map(|row| row[column]).collect();
            let mean = own.iter().sum::<f64>() / 5000.0;
            let square = own.iter().map(|x| x * x).sum::<f64>() / 5000.0;
            assert!(mean.abs() < 1e-9 && (square - 1.0).abs() < 1e-9, "{column}: {mean} {square}");
        }
        assert!(found.axis_iter(ndarray::Axis(0)).all(|row| row[1].abs() < 1e-12), "a constant stays one");
        assert!(context.notes().iter().any(|note| note.contains("column 1") && note.contains("constant")));
    }

    #[test]
    fn what_cannot_be_standardised_is_refused() {
        let context = Context::new();
        let images = Dataset::from_array("images", ndarray::Array3::<f64>::ones((2, 3, 3)).view().into_dyn()).unwrap();
        assert!(columns(images, &context).unwrap_err().to_string().contains("is for tables"));
        let broken = array![[1.0, 2.0], [f64::NAN, 3.0]];
        let broken = Dataset::from_array("broken", broken.view().into_dyn()).unwrap();
        assert!(columns(broken, &context).unwrap_err().to_string().contains("sample 1 is NaN"));
    }
}
