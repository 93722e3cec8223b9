//! Data and labels for a network.

use super::PreprocessOptions;
use mercer::spec::{DataRef, DataSpec};

/// What to run on.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Data")]
pub(crate) struct DataOptions {
    /// The samples; with several inputs once per input, as in --data input_ids=tokens.npz:ids
    #[arg(long, value_name = "[NAME=]FILE[:KEY]", required = true)]
    pub(crate) data: Vec<String>,

    /// What the samples show: one class per sample. A column of the data that is given here is no input
    #[arg(long, value_name = "FILE[:KEY]")]
    pub(crate) labels: Option<String>,

    #[command(flatten)]
    pub(crate) classes: ClassOptions,

    #[command(flatten)]
    pub(crate) preprocess: PreprocessOptions,
}

/// Which class is which output.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ClassOptions {
    /// The names of the classes in the order of the outputs: a file with a name per line, or a list as in cat,dog [default: what the network or machine was trained with]
    #[arg(long, value_name = "FILE|A,B,…", allow_hyphen_values = true, help_heading = "Data")]
    pub(crate) classes: Option<String>,
}

impl DataOptions {
    /// As data.
    pub(crate) fn spec(&self) -> DataSpec {
        DataSpec {
            data: references(&self.data),
            labels: self.labels.clone().map(DataRef::from),
            classes: self.classes.classes.clone(),
            preprocess: self.preprocess.spec(),
            used: Vec::new(),
        }
    }
}

/// Files, in the words of the user.
pub(crate) fn references(texts: &[String]) -> Vec<DataRef> {
    texts.iter().cloned().map(DataRef::from).collect()
}
