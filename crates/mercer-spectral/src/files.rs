//! The files of a folder of eigenfunctions, and how they are known from those of others.
//!
//! A description says itself what it is, and so do states and networks. Arrays cannot: beside a description of ours those of its basis
//! are ours, the others if the folder's record lists them; beside the state of a run of ours, all of them are.

use crate::error::{Result, SpectralError};
use crate::folder::{DESCRIPTION, Description};
use mercer_data::Results;
use mercer_net::export::{EIGENFUNCTIONS, is_own_onnx, kind};
use std::path::Path;

/// The kind of the record, `result.json`.
pub const KIND: &str = "eigenfunctions";

/// Functions before the Rayleigh–Ritz finish are in a folder of this name.
pub const BEFORE: &str = "before";

/// What a run goes on from.
const STATE: &str = crate::learnt::STATE;

/// Everything that a run of `mercer eigen` may write, landmarks excepted.
const NAMES: [&str; 15] = [
    DESCRIPTION,
    "values.npy",
    "weights.npy",
    "frequencies.npy",
    "functions.onnx",
    "kernel.onnx",
    "psi.npy",
    "psi_data.npy",
    "psi.onnx",
    "functions.svg",
    STATE,
    "before/eigenfunctions.json",
    "before/values.npy",
    "before/weights.npy",
    "before/functions.onnx",
];

/// What functions are saved in.
const SAVED: [&str; 6] = [DESCRIPTION, "values.npy", "weights.npy", "frequencies.npy", "functions.onnx", "kernel.onnx"];

fn is_landmarks(name: &str) -> bool {
    let digits = name.strip_prefix("landmarks").and_then(|rest| rest.strip_suffix(".npy"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.chars().all(|letter| letter.is_ascii_digit()))
}

/// The names of landmarks that are in a folder, one per input.
fn landmarks(folder: &Path) -> impl Iterator<Item = String> {
    (0..).map(|input| format!("landmarks{input}.npy")).take_while(move |name| folder.join(name).is_file())
}

fn proof(path: &Path) -> Option<bool> {
    let described = || path.parent().is_some_and(|folder| Description::read(folder).is_ok());
    // A run that was killed while it wrote left no record, but its state is there.
    let own_state = |folder: &Path| kind(&folder.join(STATE)).as_deref() == Some(EIGENFUNCTIONS);
    let begun = || path.ancestors().skip(1).take(2).any(own_state);
    match path.file_name().and_then(|name| name.to_str())? {
        DESCRIPTION => Some(described()),
        STATE => Some(kind(path).as_deref() == Some(EIGENFUNCTIONS)),
        "functions.onnx" | "psi.onnx" => Some(is_own_onnx(path)),
        "psi.npy" | "psi_data.npy" | "functions.svg" => begun().then_some(true),
        _ => (described() || begun()).then_some(true),
    }
}

/// The results of a run of `mercer eigen` that are in a folder.
pub fn results(folder: &Path) -> Result<Results<'_>> {
    Ok(Results::find(folder, KIND, &NAMES, is_landmarks, proof)?)
}

/// The files of such a run that are there, for its record.
pub fn written(folder: &Path) -> Vec<String> {
    let names = NAMES.iter().map(|&name| name.to_owned());
    names.chain(landmarks(folder)).filter(|name| folder.join(name).is_file()).collect()
}

/// Takes functions away that were saved in a folder, and the folder itself if nothing else is in it.
///
/// # Errors
/// [`SpectralError::Folder`] if its description is none of ours; then nothing is removed.
pub fn remove(folder: &Path) -> Result<()> {
    Description::read(folder)?;
    let failed = |path: &Path, error: std::io::Error| SpectralError::folder(path, error.to_string());
    // The description last: what is left of a removal that was broken off is still ours.
    let arrays: Vec<String> = SAVED[1..].iter().map(|&name| name.to_owned()).chain(landmarks(folder)).collect();
    for name in arrays.iter().map(String::as_str).chain([DESCRIPTION]) {
        let path = folder.join(name);
        if path.is_file() {
            std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
        }
    }
    // A folder with a user's own files in it stays.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}
