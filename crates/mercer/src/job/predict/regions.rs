//! Sets and intervals go to a table beside the array.

use crate::Error;
use crate::job::Destination;
use crate::job::uncertainty::Regions;
use mercer_data::write_atomic;
use std::path::{Path, PathBuf};

/// Where a table goes: `probabilities.npy` has `probabilities.sets.csv` beside it.
fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_extension(name)
}

/// An error if there is something already where a table may go, before the work begins.
pub(super) fn check(destination: &Destination) -> Result<(), Error> {
    let Some(path) = destination.path.as_deref().filter(|_| !destination.force) else { return Ok(()) };
    let places = Regions::FILES.map(|name| beside(path, name));
    match places.into_iter().find(|place| place.symlink_metadata().is_ok()) {
        Some(place) => Err(mercer_data::DataError::Exists { place: place.display().to_string() }.into()),
        None => Ok(()),
    }
}

/// Writes the table; returns where it is.
pub(super) fn write(
    regions: &Regions,
    names: Option<&[String]>,
    destination: &Destination,
) -> Result<Option<PathBuf>, Error> {
    let Some(path) = &destination.path else { return Ok(None) };
    let place = beside(path, regions.file());
    let table = regions.table(names);
    write_atomic(&place, destination.existing(), |writer| writer.write_all(table.as_bytes()))?;
    Ok(Some(place))
}
