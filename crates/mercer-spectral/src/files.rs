//! The files of a run of `mercer eigen`, and how they are known from those of others.
//!
//! Functions are a [folder](mercer_data::folder), which knows its own files. Of the others, states and networks say themselves what
//! they are. Arrays cannot: they are ours if the folder's record lists them, or beside the state of a run of ours.

use crate::error::Result;
use crate::folder::{KIND as SAVED, VALUES_FILE};
use mercer_data::Results;
use mercer_data::folder::{self, Folder, MANIFEST};
use mercer_net::export::{EIGENFUNCTIONS, is_own_onnx, kind};
use std::path::Path;

/// The kind of the record, `result.json`.
pub const KIND: &str = "eigenfunctions";

/// Functions before the Rayleigh–Ritz finish are in a folder of this name.
pub const BEFORE: &str = "before";

/// What a run goes on from.
const STATE: &str = crate::learnt::STATE;

/// Everything that a run of `mercer eigen` may write, objects excepted.
const NAMES: [&str; 9] = [
    MANIFEST,
    VALUES_FILE,
    "psi.npy",
    "psi_data.npy",
    "psi.onnx",
    "functions.svg",
    STATE,
    "before/folder.json",
    "before/values.npy",
];

fn proof(path: &Path) -> Option<bool> {
    let name = path.file_name().and_then(|name| name.to_str())?;
    let saved = || path.parent().and_then(|folder| Folder::open(folder, Some(SAVED)).ok());
    // A run that was killed while it wrote left no record, but its state is there.
    let own_state = |folder: &Path| kind(&folder.join(STATE)).as_deref() == Some(EIGENFUNCTIONS);
    let begun = || path.ancestors().skip(1).take(2).any(own_state);
    match name {
        MANIFEST => Some(path.parent().is_some_and(|folder| folder::holds(folder, SAVED))),
        STATE => Some(kind(path).as_deref() == Some(EIGENFUNCTIONS)),
        "psi.onnx" => Some(is_own_onnx(path)),
        _ if saved().is_some_and(|folder| folder.file_names().any(|own| own == name)) => Some(true),
        _ => begun().then_some(true),
    }
}

/// The results of a run of `mercer eigen` that are in a folder.
pub fn results(folder: &Path) -> Result<Results<'_>> {
    Ok(Results::find(folder, KIND, &NAMES, |_| false, proof)?)
}

/// The files of such a run that are there, for its record.
pub fn written(folder: &Path) -> Vec<String> {
    let names = NAMES.iter().filter(|name| folder.join(name).is_file());
    names.map(|&name| name.to_owned()).collect()
}

/// Takes functions away that were saved in a folder, and the folder itself if nothing else is in it.
///
/// # Errors
/// [`Foreign`](mercer_data::Error::Foreign) if something else is saved there; then nothing is removed.
pub fn remove(folder: &Path) -> Result<()> {
    Ok(folder::remove(folder, SAVED)?)
}
