//! Library errors, with a code and a hint.

use super::{Error, codes};
use crate::text::{bytes, rounded_up, suggested};
use mercer_data as data;
use mercer_kernel::KernelError;
use mercer_kernel::store::StoreError;
use mercer_learn::LearnError;
use mercer_lens::LensError;
use mercer_linalg::LinalgError;
use mercer_net::NetError;
use mercer_spectral::SpectralError;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

impl Error {
    /// An error of the network in this file. Library errors name nodes; the user also needs the file.
    pub fn of_network(path: &Path, error: NetError) -> Self {
        if let NetError::Cancelled = error {
            return Self::interrupted("interrupted");
        }
        let hint = hint_for_network(path, &error);
        let message = match &error {
            NetError::Io { .. } => error.to_string(),
            _ => format!("{}: {error}", path.display()),
        };
        Self::with_code(codes::of_network(&error), message).hinted(hint)
    }

    /// Adds a hint, if there is one.
    fn hinted(self, hint: Option<String>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
}

/// Many library messages already end with a suggestion. A hint is added only if the command line has more to say.
impl From<data::DataError> for Error {
    fn from(error: data::DataError) -> Self {
        use data::DataError as Error;
        if matches!(error, Error::Cancelled { .. }) {
            return Self::interrupted("interrupted");
        }
        let hint = match &error {
            Error::Io { source, .. } => hint_for_io(source.kind()),
            Error::Exists { .. } => Some("‹force› replaces it".to_owned()),
            Error::Foreign { .. } => Some("move it away, or name another folder".to_owned()),
            Error::Malformed { .. } | Error::Size { .. } => {
                Some("the file may be incomplete: copy or write it again".to_owned())
            }
            Error::MissingKey { place, .. } => Some(format!("`mercer info {place}` shows what it holds")),
            Error::Count { .. } => Some("data and labels must be of the same samples, in the same order".to_owned()),
            Error::ClassNames { .. } | Error::UnknownClass { .. } => {
                Some("‹classes› FILE or ‹classes› a,b,c names all classes, in the order of the outputs".to_owned())
            }
            Error::Columns { .. } => {
                Some("FILE:-COLUMN leaves a column out; others must have the names they had before".to_owned())
            }
            Error::Damaged { .. } => {
                Some("copy it again, or make it again; `mercer info` names all that is damaged".to_owned())
            }
            Error::Inexact { .. } => Some("‹precision› f64 holds whole numbers up to 2^53".to_owned()),
            _ => None,
        };
        Self::with_code(codes::of_data(&error), error.to_string()).hinted(hint)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let hint = match error {
            StoreError::Cancelled => return Self::interrupted("interrupted"),
            StoreError::Data(error) => return error.into(),
            StoreError::Io { ref source, .. } => hint_for_io(source.kind()),
            StoreError::Exists { .. } => Some("‹resume› continues it; ‹force› replaces it".to_owned()),
            StoreError::OtherInputs { .. } => {
                Some("‹resume› with the inputs of the first time, or choose another name".to_owned())
            }
            StoreError::Foreign { .. } => Some("move it away first".to_owned()),
            StoreError::Replaced { .. } => Some("choose another ‹out› for this run".to_owned()),
            StoreError::Vanished { .. } => Some("‹resume› computes them again".to_owned()),
            StoreError::Incomplete { .. } => Some("‹resume› computes what is missing".to_owned()),
            StoreError::Damaged { .. } => {
                Some("`mercer info` names all damaged tiles; ‹resume› computes them again".to_owned())
            }
            _ => None,
        };
        Self::with_code(codes::of_store(&error), error.to_string()).hinted(hint)
    }
}

impl From<LearnError> for Error {
    fn from(error: LearnError) -> Self {
        let hint = match error {
            LearnError::Data(error) => return (*error).into(),
            LearnError::Kernel(error) => return (*error).into(),
            LearnError::Network(error) => return (*error).into(),
            LearnError::Algebra(LinalgError::NotPositiveDefinite { .. }) => {
                Some("the matrix is not a kernel, or far from one by rounding: a larger ‹alpha› or ‹noise›".to_owned())
            }
            LearnError::Algebra(LinalgError::NotSymmetric { .. }) => Some(
                "a Gram matrix is symmetric: is this the kernel of the training samples with themselves?".to_owned(),
            ),
            LearnError::NotBinary { .. } => Some("glm, svm, process-classifier".to_owned()),
            LearnError::Basis { .. } => Some("predict from what the machine was fitted on".to_owned()),
            _ => None,
        };
        Self::with_code(codes::of_learning(&error), error.to_string()).hinted(hint)
    }
}

impl From<SpectralError> for Error {
    fn from(error: SpectralError) -> Self {
        let code = codes::of_spectral(&error);
        match error {
            SpectralError::Data(error) => (*error).into(),
            SpectralError::Kernel(error) => (*error).into(),
            SpectralError::Network(error) => (*error).into(),
            SpectralError::Cancelled => Self::interrupted("interrupted"),
            SpectralError::NoSpectrum { .. } => Self::with_code(code, error.to_string())
                .hint("is the kernel zero on these data, or the matrix negative?"),
            SpectralError::Memory { what, rows, columns, needed, allowed } => Self::with_code(
                code,
                format!(
                    "{what} of {rows} × {columns} numbers need about {}, but {} may be used",
                    bytes(needed),
                    bytes(allowed)
                ),
            )
            .hint(format!(
                "‹memory› {}, the method lanczos, nystrom with fewer ‹landmarks›, or rff with fewer ‹frequencies›",
                suggested(needed)
            )),
            SpectralError::Indefinite { .. } => Self::with_code(code, error.to_string())
                .hint("‹landmark-choice› uniform, k-means++ or all; the method exact counts the negative eigenvalues"),
            SpectralError::OtherKernel { .. } => {
                Self::with_code(code, error.to_string()).hint("find the functions again with `mercer eigen`")
            }
            other => Self::with_code(code, other.to_string()),
        }
    }
}

impl From<KernelError> for Error {
    fn from(error: KernelError) -> Self {
        let code = codes::of_kernel(&error);
        match error {
            KernelError::Network(error) => (*error).into(),
            KernelError::Data(error) => (*error).into(),
            KernelError::Store(error) => (*error).into(),
            KernelError::Cancelled => Self::interrupted("interrupted"),
            KernelError::Memory { allowed, needed } => {
                let text = format!("‹memory› {} is too little for one tile", bytes(allowed));
                Self::with_code(code, text).hint(format!("‹memory› {}, the smallest that would do", rounded_up(needed)))
            }
            KernelError::Disk { place, needed, free } => {
                let (needed, free) = (bytes(needed as usize), bytes(free as usize));
                let text = format!("the result takes {needed}, but only {free} are free in {place}");
                Self::with_code(code, text).hint(
                    "‹out› on another disk; ‹as-features› writes the features of a kernel that has some instead of a number per pair",
                )
            }
            KernelError::NotFinite { .. } | KernelError::Overflow { .. } => Self::with_code(code, error.to_string())
                .hint("the numbers overflow: ‹precision› f64, or ‹scale› for data that are too large"),
            other => Self::with_code(code, other.to_string()),
        }
    }
}

impl From<LinalgError> for Error {
    fn from(error: LinalgError) -> Self {
        Self::with_code(codes::of_algebra(&error), error.to_string())
    }
}

impl From<LensError> for Error {
    fn from(error: LensError) -> Self {
        if error == LensError::Cancelled {
            return Self::interrupted("interrupted");
        }
        Self::with_code(codes::of_lens(&error), error.to_string())
    }
}

impl From<NetError> for Error {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Cancelled => Self::interrupted("interrupted"),
            NetError::Data(error) => error.into(),
            NetError::OtherRun { .. } => Self::with_code(codes::of_network(&error), error.to_string())
                .hint("‹resume› with the options of the first time, or ‹force› to begin again"),
            NetError::State { .. } | NetError::Tensor { .. } => {
                Self::with_code(codes::of_network(&error), error.to_string()).hint("‹force› starts again")
            }
            other => {
                let hint = hint_for_network(Path::new("MODEL"), &other);
                Self::with_code(codes::of_network(&other), other.to_string()).hinted(hint)
            }
        }
    }
}

impl From<mercer_run::Cancelled> for Error {
    fn from(_: mercer_run::Cancelled) -> Self {
        Self::interrupted("interrupted")
    }
}

fn hint_for_io(kind: ErrorKind) -> Option<String> {
    let hint = match kind {
        ErrorKind::NotFound => "is the path right? It is looked up from the current folder",
        ErrorKind::PermissionDenied => "check the read and write permissions",
        ErrorKind::IsADirectory => "a file is needed here, not a folder",
        _ => return None,
    };
    Some(hint.to_owned())
}

fn hint_for_network(path: &Path, error: &NetError) -> Option<String> {
    let path = path.display();
    let hint = match error {
        NetError::Io { source, .. } => return hint_for_io(source.kind()),
        NetError::Malformed { .. } => {
            "the file may be incomplete, or not an ONNX model: export or copy it again".to_owned()
        }
        NetError::Unsupported { .. } => {
            "export the network in evaluation mode, or rewrite this operator with simpler ones".to_owned()
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

/// A file that needs much memory is rejected unless the user allows it.
pub(crate) fn hint_for_budget() -> String {
    "if you trust the file, ‹import-limit› SIZE (as in 4GiB) allows more".to_owned()
}

/// Adds the file to errors about a network.
pub trait AboutNetwork<T> {
    /// The same result, with the file in its error.
    fn about(self, path: &Path) -> Result<T, Error>;
}

impl<T> AboutNetwork<T> for Result<T, NetError> {
    fn about(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::of_network(path, error))
    }
}

/// The error for a file that cannot be read.
pub(crate) fn cannot_open(what: impl Display, error: &std::io::Error) -> Error {
    cannot_write(what, error)
}

/// The error for a file that cannot be written.
pub(crate) fn cannot_write(what: impl Display, error: &std::io::Error) -> Error {
    Error::with_code("io", format!("{what}: {error}")).hinted(hint_for_io(error.kind()))
}
