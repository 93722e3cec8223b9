//! What the user sees when something goes wrong: what happened, where, and what to try.

use mercer::data;
use mercer::kernel::store::StoreError;
use mercer::learn::LearnError;
use mercer::net::NetError;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use crate::interrupt::EXIT as INTERRUPTED;

/// The end of a command that could not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    hint: Option<String>,
    exit: u8,
}

impl Failure {
    /// An error.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: 2 }
    }

    /// A check that the user asked for has failed.
    pub(crate) fn check(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: 1 }
    }

    /// The user pressed Ctrl-C; what to try is how to go on.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: INTERRUPTED }
    }

    /// With what to try.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error of a network that is in this file. Errors of the library speak of nodes; the user has files.
    pub(crate) fn of_network(path: &Path, error: NetError) -> Self {
        let hint = hint_for_network(path, &error);
        let message = match &error {
            NetError::Io { .. } => error.to_string(),
            _ => format!("{}: {error}", path.display()),
        };
        Self { message, hint, exit: 2 }
    }

    /// With what to try if it was the user who stopped.
    pub(crate) fn when_interrupted(self, hint: impl FnOnce() -> String) -> Self {
        if self.exit == INTERRUPTED { self.hint(hint()) } else { self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit)
    }
}

/// Many a message of the libraries ends in what to try; a hint is added only where the command line has more to say.
impl From<data::Error> for Failure {
    fn from(error: data::Error) -> Self {
        use data::Error;
        let hint = match &error {
            Error::Io { source, .. } => hint_for_io(source.kind()),
            Error::Exists { .. } => Some("--force replaces it".to_owned()),
            Error::Foreign { .. } => Some("move it away, or name another folder".to_owned()),
            Error::Malformed { .. } | Error::Size { .. } => {
                Some("the file may be incomplete: copy or write it again".to_owned())
            }
            Error::MissingKey { place, .. } => Some(format!("`mercer info {place}` shows what it holds")),
            Error::Count { .. } => Some("data and labels must be of the same samples, in the same order".to_owned()),
            Error::ClassNames { .. } | Error::UnknownClass { .. } => {
                Some("--classes FILE or --classes a,b,c names all classes, in the order of the outputs".to_owned())
            }
            Error::Columns { .. } => {
                Some("FILE:-COLUMN leaves a column out; others must have the names they had before".to_owned())
            }
            Error::Inexact { .. } => Some("--precision f64 holds whole numbers up to 2^53".to_owned()),
            _ => None,
        };
        Self { message: error.to_string(), hint, exit: 2 }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let hint = match error {
            StoreError::Cancelled => return Self::interrupted("stopped"),
            StoreError::Data(error) => return error.into(),
            StoreError::Io { ref source, .. } => hint_for_io(source.kind()),
            StoreError::Exists { .. } => Some("--resume goes on with it; --force replaces it".to_owned()),
            StoreError::OtherInputs { .. } => {
                Some("--resume with the inputs of the first time, or choose another name".to_owned())
            }
            StoreError::Foreign { .. } => Some("move it away first".to_owned()),
            StoreError::Vanished { .. } => Some("--resume computes them again".to_owned()),
            StoreError::Incomplete { .. } => Some("--resume computes what is missing".to_owned()),
            StoreError::Damaged { .. } => {
                Some("`mercer info` names all damaged tiles; --resume computes them again".to_owned())
            }
            _ => None,
        };
        Self { message: error.to_string(), hint, exit: 2 }
    }
}

impl From<LearnError> for Failure {
    fn from(error: LearnError) -> Self {
        let hint = match error {
            LearnError::Data(error) => return (*error).into(),
            LearnError::Algebra(mercer::linalg::Error::NotPositiveDefinite { .. }) => {
                Some("the matrix is not a kernel, or far from one by rounding: a larger --alpha or --noise".to_owned())
            }
            LearnError::Algebra(mercer::linalg::Error::NotSymmetric { .. }) => Some(
                "a Gram matrix is symmetric: is this the kernel of the training samples with themselves?".to_owned(),
            ),
            LearnError::NotBinary { .. } => Some("glm, svm, process-classifier".to_owned()),
            LearnError::Basis { .. } => Some("predict from what the machine was fitted on".to_owned()),
            _ => None,
        };
        Self { message: error.to_string(), hint, exit: 2 }
    }
}

fn hint_for_io(kind: ErrorKind) -> Option<String> {
    let hint = match kind {
        ErrorKind::NotFound => "is the path right? It is looked up from the current folder",
        ErrorKind::PermissionDenied => "you need the right to read or write there",
        ErrorKind::IsADirectory => "a file is needed here, not a folder",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn hint_for_network(path: &Path, error: &NetError) -> Option<String> {
    let path = path.display();
    let hint = match error {
        NetError::Io { source, .. } => return hint_for_io(source.kind()),
        NetError::Malformed { .. } => "the file may be incomplete or no ONNX model: export or copy it again".to_owned(),
        NetError::Unsupported { .. } => {
            "export the network in evaluation mode with constants folded, or rewrite this operator with simpler ones"
                .to_owned()
        }
        NetError::MixesSamples { .. } => {
            "export the network in evaluation mode, and reduce or reshape along axes of one sample only".to_owned()
        }
        NetError::Input { .. } => format!("`mercer info {path}` shows the inputs; `mercer info FILE` shows the data"),
        NetError::Unknown { .. } => format!("`mercer info {path} -v` lists all names"),
        NetError::OverBudget { .. } | NetError::TooMuchWork { .. } => hint_for_budget(),
        _ => return None,
    };
    Some(hint)
}

/// A file that asks for much is refused, unless the user knows it.
pub(crate) fn hint_for_budget() -> String {
    "if you trust the file, --import-limit SIZE (as in 4GiB) allows more".to_owned()
}

/// Adds the file to errors about a network.
pub(crate) trait AboutNetwork<T> {
    /// The same result, with the file in its error.
    fn about(self, path: &Path) -> Result<T, Failure>;
}

impl<T> AboutNetwork<T> for Result<T, NetError> {
    fn about(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|error| Failure::of_network(path, error))
    }
}

/// The failure of reading what cannot be read.
pub(crate) fn cannot_open(what: impl Display, error: &std::io::Error) -> Failure {
    cannot_write(what, error)
}

/// The failure of writing what cannot be written.
pub(crate) fn cannot_write(what: impl Display, error: &std::io::Error) -> Failure {
    Failure { message: format!("{what}: {error}"), hint: hint_for_io(error.kind()), exit: 2 }
}
