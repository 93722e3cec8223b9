//! Samples, their labels, and held-out samples.

use super::{DecodingOptions, PreprocessOptions};
use mercer::spec::{DataRef, DataSpec};

/// Help of `--gram`, shared by all commands.
pub(crate) const GRAM: &str = "Gram matrix computed before: an .npy file or a .zarr store";

/// Help of `--from`, likewise.
pub(crate) const FROM: &str = "Folder written by an earlier command, such as `mercer fit` or `mercer explain`";

/// Help of `--ood`, likewise.
pub(crate) const OOD: &str = "Samples of another kind (out of distribution)";

/// The data to run on.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataOptions {
    /// Samples: a file, a column of texts, a folder of images; repeatable (ids=tokens.npz)
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", required = true)]
    pub(crate) data: Vec<String>,

    /// Labels: classes or numbers. If they are a column of --data, it is not an input
    #[arg(long, value_name = "FILE[:KEY]")]
    pub(crate) labels: Option<String>,

    #[command(flatten)]
    pub(crate) classes: ClassOptions,

    #[command(flatten)]
    pub(crate) preprocess: PreprocessOptions,

    #[command(flatten)]
    pub(crate) decoding: DecodingOptions,
}

/// Which class is which output.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ClassOptions {
    /// Class names in output order: cat,dog or a file with one per line [default: as trained]
    #[arg(long, value_name = "FILE|A,B,…", allow_hyphen_values = true, help_heading = "Data")]
    pub(crate) classes: Option<String>,
}

/// Held-out samples.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct TestOptions {
    /// Held-out samples to evaluate the result on
    #[arg(long, value_name = "[NAME=]FILE[:KEY]")]
    pub(crate) test: Vec<String>,

    /// Labels of the held-out samples
    #[arg(long, value_name = "FILE[:KEY]", requires = "test")]
    pub(crate) test_labels: Option<String>,
}

impl DataOptions {
    /// As data.
    pub(crate) fn spec(&self) -> DataSpec {
        DataSpec {
            data: references(&self.data),
            labels: reference(&self.labels),
            classes: self.classes.classes.clone(),
            preprocess: self.preprocess.spec(),
            decoding: self.decoding.spec(),
            used: Vec::new(),
        }
    }

    /// As data for commands that need labels: those of a folder of images are its class folders.
    pub(crate) fn labelled(&self) -> DataSpec {
        self.spec().labelled_by_folders()
    }
}

/// Files as the user wrote them.
pub(crate) fn references(texts: &[String]) -> Vec<DataRef> {
    texts.iter().cloned().map(DataRef::from).collect()
}

/// An optional file as the user wrote it.
pub(crate) fn reference(text: &Option<String>) -> Option<DataRef> {
    text.clone().map(DataRef::from)
}
