//! The source of the functions, and settings shared by all methods.

use crate::options::{
    ComponentsOption, DataOptions, GRAM, KernelOptions, ParameterOptions, PrecisionOption, TestOptions, reference,
    references,
};
use crate::output::{DryRunOption, OutputFolder};
use mercer::job::EigenJob;
use mercer::job::eigen::{EigenMethod, EigenSource};
use std::path::PathBuf;

/// Settings shared by all methods.
#[derive(Debug, clap::Args)]
pub(super) struct ResultOptions {
    #[command(flatten)]
    data: DataOptions,

    #[command(flatten)]
    test: TestOptions,

    #[command(flatten)]
    pub(super) output: OutputFolder,

    #[command(flatten)]
    precision: PrecisionOption,

    #[command(flatten)]
    pub(super) dry_run: DryRunOption,
}

/// Functions of a kernel. Rarely used flags appear only in `mercer help`, which keeps `--help` short.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("include", |arg| arg.hide_short_help(true)),
    mut_arg("exclude", |arg| arg.hide_short_help(true)),
    mut_arg("unmerge", |arg| arg.hide_short_help(true)),
    mut_arg("import_limit", |arg| arg.hide_short_help(true))
)]
pub(super) struct OfKernel {
    #[command(flatten)]
    components: ComponentsOption,

    /// Also decompose the whole matrix, and compare the functions with the exact ones
    #[arg(long, help_heading = "Eigenfunctions")]
    truth: bool,

    #[command(flatten)]
    kernel: KernelOptions,

    #[command(flatten)]
    parameters: ParameterOptions,

    #[command(flatten)]
    pub(super) results: ResultOptions,
}

/// Functions of a kernel, or of a matrix computed earlier.
#[derive(Debug, clap::Args)]
#[command(mut_arg("data", |arg| arg.required(false)))]
pub(super) struct OfMatrix {
    #[command(flatten)]
    of: OfKernel,

    #[arg(long, value_name = "FILE", help = GRAM, help_heading = "Kernel", conflicts_with_all = ["net", "arch", "kernel"])]
    gram: Option<PathBuf>,
}

impl ResultOptions {
    /// The job of a method; its source is still missing.
    pub(super) fn job(&self, method: EigenMethod, components: ComponentsOption, seed: u64) -> EigenJob {
        EigenJob {
            of: None,
            data: self.data.spec(),
            eval: references(&self.test.test),
            eval_labels: reference(&self.test.test_labels),
            method,
            k: components.k,
            truth: false,
            precision: self.precision.precision,
            seed,
        }
    }
}

impl OfKernel {
    pub(super) fn job(&self, method: EigenMethod) -> EigenJob {
        let kernel = self.kernel.spec(&self.parameters);
        let job = self.results.job(method, self.components, kernel.seed);
        let of = self.kernel.is_given().then(|| EigenSource::Kernel(Box::new(kernel)));
        EigenJob { of, truth: self.truth, ..job }
    }
}

impl OfMatrix {
    pub(super) fn results(&self) -> &ResultOptions {
        &self.of.results
    }

    pub(super) fn job(&self, method: EigenMethod) -> EigenJob {
        let job = self.of.job(method);
        match &self.gram {
            Some(path) => EigenJob { of: Some(EigenSource::Gram(path.clone())), ..job },
            None => job,
        }
    }
}
