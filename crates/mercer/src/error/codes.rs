//! The stable code of every library error. Codes are never renamed; a new error may get a new code.

use mercer_data::DataError;
use mercer_kernel::KernelError;
use mercer_kernel::store::StoreError;
use mercer_learn::LearnError;
use mercer_lens::LensError;
use mercer_linalg::LinalgError;
use mercer_net::NetError;
use mercer_spectral::SpectralError;

/// What none of the others says.
const OTHER: &str = "other";

pub(super) fn of_data(error: &DataError) -> &'static str {
    match error {
        DataError::Io { .. } => "io",
        DataError::Source { .. } => "bad-source",
        DataError::UnknownFormat { .. } => "unknown-format",
        DataError::Malformed { .. } | DataError::Size { .. } => "malformed-file",
        DataError::TooLarge { .. } => "too-large",
        DataError::Memory { .. } => "memory",
        DataError::ElementType { .. } => "element-type",
        DataError::MissingKey { .. } | DataError::KeyNeeded { .. } | DataError::KeyNotUsed { .. } => "key",
        DataError::Cell { .. } => "cell",
        DataError::NotFinite { .. } => "not-finite",
        DataError::Inexact { .. } => "inexact",
        DataError::Row { .. } => "row",
        DataError::Shape { .. } => "shape",
        DataError::UsedColumn { .. } => "label-leak",
        DataError::Columns { .. } => "columns",
        DataError::Samples { .. } | DataError::Count { .. } => "sample-count",
        DataError::ClassNames { .. } | DataError::UnknownClass { .. } => "classes",
        DataError::Label { .. } => "label",
        DataError::Argument { .. } => "bad-request",
        DataError::Refused { .. } => "unsuitable-data",
        DataError::Exists { .. } => "exists",
        DataError::Foreign { .. } => "foreign-file",
        DataError::Damaged { .. } => "damaged",
        DataError::Changed { .. } => "changed-file",
        DataError::Version { .. } => "newer-version",
        DataError::Kind { .. } => "other-kind",
        _ => OTHER,
    }
}

pub(super) fn of_network(error: &NetError) -> &'static str {
    match error {
        NetError::Io { .. } => "io",
        NetError::Malformed { .. } => "malformed-file",
        NetError::Unsupported { .. } => "unsupported-operator",
        NetError::MixesSamples { .. } => "mixes-samples",
        NetError::Shape { .. } => "shape",
        NetError::OverBudget { .. } | NetError::TooMuchWork { .. } => "over-budget",
        NetError::Input { .. } => "network-input",
        NetError::Unknown { .. } => "unknown-name",
        NetError::NotFinite { .. } => "not-finite",
        NetError::Diverged { .. } => "diverged",
        NetError::Cancelled => super::INTERRUPTED,
        NetError::OtherRun { .. } => "other-run",
        NetError::Tensor { .. } | NetError::State { .. } => "damaged",
        NetError::Data(error) => of_data(error),
        NetError::Setting(_) => super::REQUEST,
        _ => OTHER,
    }
}

pub(super) fn of_kernel(error: &KernelError) -> &'static str {
    match error {
        KernelError::Network(error) => of_network(error),
        KernelError::Data(error) => of_data(error),
        KernelError::Algebra(error) => of_algebra(error),
        KernelError::NotFinite { .. } | KernelError::Overflow { .. } => "not-finite",
        KernelError::NoLimit { .. } => "no-limit",
        KernelError::Classic(_) => "formula",
        KernelError::Memory { .. } => "memory",
        KernelError::Disk { .. } => "disk",
        KernelError::Store(error) => of_store(error),
        KernelError::Cancelled => super::INTERRUPTED,
        KernelError::Setting(_) => super::REQUEST,
        _ => OTHER,
    }
}

pub(super) fn of_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::Io { .. } => "io",
        StoreError::Exists { .. } => "exists",
        StoreError::Malformed { .. } => "malformed-file",
        StoreError::OtherInputs { .. } => "other-run",
        StoreError::Damaged { .. } => "damaged",
        StoreError::Foreign { .. } => "foreign-file",
        StoreError::Replaced { .. } => "replaced",
        StoreError::Missing { .. } | StoreError::Vanished { .. } | StoreError::Incomplete { .. } => "incomplete",
        StoreError::Memory { .. } => "memory",
        StoreError::Data(error) => of_data(error),
        StoreError::Cancelled => super::INTERRUPTED,
        _ => OTHER,
    }
}

pub(super) fn of_spectral(error: &SpectralError) -> &'static str {
    match error {
        SpectralError::Kernel(error) => of_kernel(error),
        SpectralError::Algebra(error) => of_algebra(error),
        SpectralError::Data(error) => of_data(error),
        SpectralError::Network(error) => of_network(error),
        SpectralError::Input { .. } | SpectralError::Inputs { .. } => "shape",
        SpectralError::NoSpectrum { .. } => "no-spectrum",
        SpectralError::Indefinite { .. } => "indefinite",
        SpectralError::Memory { .. } => "memory",
        SpectralError::OtherKernel { .. } => "other-run",
        SpectralError::Cancelled => super::INTERRUPTED,
        SpectralError::Setting(_) => super::REQUEST,
        _ => OTHER,
    }
}

pub(super) fn of_learning(error: &LearnError) -> &'static str {
    match error {
        LearnError::Algebra(error) => of_algebra(error),
        LearnError::Data(error) => of_data(error),
        LearnError::Kernel(error) => of_kernel(error),
        LearnError::Network(error) => of_network(error),
        LearnError::Setting { .. } => super::REQUEST,
        LearnError::Shape { .. } | LearnError::Basis { .. } => "shape",
        LearnError::Empty { .. } => "sample-count",
        LearnError::OneClass { .. }
        | LearnError::NotBinary { .. }
        | LearnError::TooFew { .. }
        | LearnError::Class { .. } => "classes",
        LearnError::NotConverged { .. } => "not-converged",
        LearnError::Memory { .. } => "memory",
        LearnError::Undefined { .. } => "undefined",
        LearnError::NotFinite { .. } => "not-finite",
        _ => OTHER,
    }
}

pub(super) fn of_lens(error: &LensError) -> &'static str {
    match error {
        LensError::Algebra(error) => of_algebra(error),
        LensError::Rows { .. } | LensError::TooFew { .. } => "sample-count",
        _ => OTHER,
    }
}

pub(super) fn of_algebra(error: &LinalgError) -> &'static str {
    match error {
        LinalgError::NotFinite { .. } => "not-finite",
        LinalgError::ShapeMismatch { .. } | LinalgError::TooManyComponents { .. } => "shape",
        LinalgError::NotSymmetric { .. } => "not-symmetric",
        LinalgError::NotPositiveDefinite { .. } | LinalgError::Singular { .. } | LinalgError::Indefinite { .. } => {
            "not-positive-definite"
        }
        LinalgError::NotConverged { .. } | LinalgError::NotSolved { .. } => "not-converged",
        LinalgError::CheckFailed { .. } => "failed-verification",
        _ => OTHER,
    }
}
