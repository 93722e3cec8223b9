//! Machines as folders: `machine.json` says what it is, `.npy` files hold its matrices.

use crate::error::{LearnError, Result};
use mercer_data::{Existing, Source, write_atomic, write_npy};
use ndarray::{Array2, ArrayView2, Ix2};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "machine.json";
const FORMAT: u32 = 1;

/// `machine.json`: which machine, and what it wants to remember of itself.
#[derive(Debug, Serialize, Deserialize)]
struct Described<D> {
    machine: String,
    format: u32,
    #[serde(flatten)]
    description: D,
}

/// Writes a machine into a folder, which is made if there is none. The description comes last: without it there is no
/// machine.
pub(crate) fn write<D: Serialize>(
    folder: &Path,
    existing: Existing,
    machine: &str,
    description: D,
    matrices: &[(String, ArrayView2<'_, f64>)],
) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| wrong(folder, format!("cannot be made: {error}")))?;
    if existing == Existing::Refuse && folder.join(FILE).exists() {
        return Err(mercer_data::Error::Exists { place: folder.join(FILE).display().to_string() }.into());
    }
    for (name, matrix) in matrices {
        write_npy(&folder.join(format!("{name}.npy")), matrix, existing)?;
    }
    let described = Described { machine: machine.to_owned(), format: FORMAT, description };
    Ok(write_atomic(&folder.join(FILE), existing, |writer| Ok(serde_json::to_writer_pretty(writer, &described)?))?)
}

/// The description of a machine of this kind.
pub(crate) fn read<D: DeserializeOwned>(folder: &Path, machine: &str) -> Result<D> {
    let path = folder.join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&path, format!("cannot be read: {error}")))?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| wrong(&path, error.to_string()))?;
    if value["machine"] != machine || value["format"] != FORMAT {
        let reason = format!("is of the machine {}, format {}; expected is {machine:?}, {FORMAT}", value["machine"], value["format"]);
        return Err(wrong(&path, reason));
    }
    serde_json::from_value(value).map_err(|error| wrong(&path, error.to_string()))
}

/// A matrix of a machine; `None` for a size that the description leaves open.
pub(crate) fn matrix(folder: &Path, name: &str, shape: (Option<usize>, Option<usize>)) -> Result<Array2<f64>> {
    let path = folder.join(format!("{name}.npy"));
    let data = Source::new(&path, None).open()?;
    let found = data.shape().to_vec();
    let fits = |size: Option<usize>, at: usize| size.is_none_or(|size| found[at] == size);
    if found.len() != 2 || !fits(shape.0, 0) || !fits(shape.1, 1) {
        let size = |size: Option<usize>| size.map_or("any".to_owned(), |size| size.to_string());
        let reason = format!("has the shape {found:?}, but {} × {} is expected", size(shape.0), size(shape.1));
        return Err(wrong(&path, reason));
    }
    data.read::<f64>()?.into_dimensionality::<Ix2>().map_err(|error| wrong(&path, error.to_string()))
}

pub(crate) fn wrong(place: &Path, reason: String) -> LearnError {
    LearnError::Malformed { place: place.display().to_string(), reason }
}
