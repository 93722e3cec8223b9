//! Means go to one file, and their variances to another beside it.

use crate::Error;
use crate::job::Destination;
use mercer_data::write_npy;
use ndarray::Array2;
use std::path::{Path, PathBuf};

/// Where the variances of means go: `mean.npy` has `mean.variance.npy` beside it.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("variance.npy")
}

/// An error if there is something already where variances go, before the work begins.
pub(super) fn check(destination: &Destination) -> Result<(), Error> {
    let taken = destination.path.as_deref().map(beside).filter(|path| path.symlink_metadata().is_ok());
    match taken.filter(|_| !destination.force) {
        Some(path) => Err(mercer_data::DataError::Exists { place: path.display().to_string() }.into()),
        None => Ok(()),
    }
}

/// Writes means, and their variances if there are any; returns where those are.
pub(super) fn write(
    means: &Array2<f64>,
    variances: Option<&Array2<f64>>,
    destination: &Destination,
) -> Result<Option<PathBuf>, Error> {
    let Some(path) = &destination.path else { return Ok(None) };
    let beside = variances.map(|variances| (beside(path), variances));
    if let Some((place, variances)) = &beside {
        write_npy(place, variances, destination.existing())?;
    }
    write_npy(path, means, destination.existing())?;
    Ok(beside.map(|(place, _)| place))
}
