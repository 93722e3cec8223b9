//! The commands: as functions of the package, and as the program itself.

use crate::arrays::dataset;
use crate::failure::raised;
use crate::work::Resources;
use mercer::data::folder::Folder;
use mercer::spec::Inputs;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs a command line on arrays and saved folders of this program; the result is a text in JSON.
#[pyfunction]
#[pyo3(signature = (line, arrays, resources, folders = Vec::new()))]
pub(crate) fn call(
    py: Python<'_>,
    line: Vec<OsString>,
    arrays: Vec<(String, Bound<'_, PyAny>)>,
    resources: Resources,
    folders: Vec<(String, Bound<'_, PyBytes>)>,
) -> PyResult<String> {
    let mut inputs = Inputs::none();
    for (name, array) in &arrays {
        inputs = inputs.with(name, dataset(name, array)?);
    }
    for (name, bytes) in &folders {
        inputs = inputs.with_folder(name, bytes.as_bytes().into());
    }
    resources.run(py, move |context| mercer_cli::call(&line, inputs, context.clone()))
}

/// A saved folder as bytes, without its named files.
#[pyfunction]
pub(crate) fn pack(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let packed = py.detach(|| Folder::open(&path, None).and_then(|folder| folder.to_bytes()));
    packed.map(|bytes| PyBytes::new(py, &bytes)).map_err(|error| raised(py, &error.into()))
}

/// The program `mercer`: runs the command line of this process and returns its exit code.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, line: Vec<OsString>) -> u8 {
    py.detach(|| mercer_cli::run(line))
}

/// A number of bytes, written as `4GiB`.
#[pyfunction]
pub(crate) fn size(py: Python<'_>, text: &str) -> PyResult<usize> {
    let failed = |reason: String| raised(py, &mercer::Error::new(format!("‹memory› {text}: {reason}")));
    mercer_cli::parse_bytes(text).map_err(failed)
}

/// The instruction sets that decide the last bits of results.
#[pyfunction]
pub(crate) fn instructions() -> String {
    mercer::linalg::simd::instruction_set()
}

/// All commands, with their flags.
#[pyfunction]
pub(crate) fn describe(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let commands = PyList::empty(py);
    for command in mercer_cli::describe() {
        let flags = PyList::empty(py);
        for flag in &command.flags {
            let entry = PyDict::new(py);
            entry.set_item("name", &flag.name)?;
            entry.set_item("dashed", &flag.dashed)?;
            entry.set_item("help", &flag.help)?;
            entry.set_item("value", &flag.value)?;
            entry.set_item("optional_value", flag.optional_value)?;
            entry.set_item("delimiter", flag.delimiter)?;
            entry.set_item("repeated", flag.repeated)?;
            entry.set_item("required", flag.required)?;
            entry.set_item("defaults", &flag.defaults)?;
            let choices: Vec<(&str, &str)> =
                flag.choices.iter().map(|choice| (choice.name.as_str(), choice.help.as_str())).collect();
            entry.set_item("choices", choices)?;
            flags.append(entry)?;
        }
        let entry = PyDict::new(py);
        entry.set_item("path", &command.path)?;
        entry.set_item("about", &command.about)?;
        entry.set_item("more", &command.more)?;
        entry.set_item("flags", flags)?;
        commands.append(entry)?;
    }
    Ok(commands)
}
