//! Errors of the library as exceptions of the package.

use mercer::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A setting as a keyword of a function.
pub(crate) fn keyword(name: &str) -> String {
    match name {
        "from" => "from_".to_owned(),
        other => other.replace('-', "_"),
    }
}

/// The exception `mercer.Error` with the message, the code and the hints of an error.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let error = error.rendered(keyword);
    let hints: Vec<&str> = error.hints().iter().map(|hint| hint.text.as_str()).collect();
    let class = py.import("mercer._errors").and_then(|module| module.getattr("Error"));
    match class.and_then(|class| class.call1((error.message(), error.code(), hints))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(other) => other,
    }
}

/// A panic: a bug of ours.
pub(crate) fn bug() -> PyErr {
    let version = env!("CARGO_PKG_VERSION");
    PyRuntimeError::new_err(format!("this is a bug in mercer {version}; please report it with the code that you ran"))
}
