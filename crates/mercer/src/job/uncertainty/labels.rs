//! Labels of several sets of samples, in one numbering.

use crate::Error;
use mercer_data::{Classes, Labels};
use ndarray::Array2;

/// The setting that names the labels of some samples.
pub(super) fn labels_setting(samples: &str) -> String {
    if samples == "data" { "labels".to_owned() } else { format!("{samples}-labels") }
}

/// Labels with classes numbered as in the training set.
pub(super) fn same_classes(setting: &str, own: &Labels, known: &Labels) -> Result<Labels, Error> {
    match (own, known) {
        (Labels::Classes(own), Labels::Classes(known)) if own.names() != known.names() => {
            let renamed = own.with_names(known.names());
            renamed.map(Labels::Classes).map_err(|error| Error::new(format!("‹{setting}›: {error}")))
        }
        (Labels::Classes(_), Labels::Targets(known)) => as_numbers(setting, own.clone(), known.ncols()),
        (Labels::Targets(_), Labels::Classes(_)) => {
            Err(Error::new(format!("‹{setting}› are numbers, but ‹labels› are classes"))
                .hint("both must be of one kind"))
        }
        _ => Ok(own.clone()),
    }
}

/// Whole numbers among the targets of a regression with one output look like classes.
pub(super) fn as_numbers(setting: &str, labels: Labels, outputs: usize) -> Result<Labels, Error> {
    match labels {
        Labels::Classes(classes) if outputs == 1 => Ok(Labels::Targets(column(setting, &classes)?)),
        other => Ok(other),
    }
}

fn column(setting: &str, classes: &Classes) -> Result<Array2<f64>, Error> {
    let numbers = classes.indices().iter().map(|&index| classes.names()[index].parse::<f64>());
    let numbers: Vec<f64> = numbers
        .collect::<Result<_, _>>()
        .map_err(|_| Error::new(format!("‹{setting}›: the labels are not numbers")))?;
    Ok(Array2::from_shape_fn((numbers.len(), 1), |(row, _)| numbers[row]))
}
