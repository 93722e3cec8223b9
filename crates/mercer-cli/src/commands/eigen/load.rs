//! `--load`: functions of a folder on new samples.

use super::report::EigenReport;
use super::solve::failure;
use super::{EigenArguments, codes};
use crate::console::Console;
use crate::failure::Failure;
use crate::options::{DataOptions, Samples};
use mercer::kernel::{Real, SavedKernel};
use mercer::spectral::Eigenfunctions;
use std::path::Path;
use std::time::Instant;

impl EigenArguments {
    pub(super) fn evaluate<T: Real>(
        &self,
        folder: &Path,
        report: &mut EigenReport,
        console: &Console,
    ) -> Result<(), Failure> {
        let functions = Eigenfunctions::<T>::load(folder, None).map_err(failure)?;
        report.values = functions.values().to_vec();
        report.repairs = *functions.repairs();
        report.kernel = Some(folder.display().to_string());
        let network =
            functions.saved_kernel().map(SavedKernel::open).transpose().map_err(|error| failure(error.into()))?;
        let network = network.flatten();
        let stored = functions.notes().get("preprocess");
        let columns = Samples::columns_of_note(functions.notes().get("columns"))?;
        let open = |flag: &str, texts: &[String], options: &DataOptions| {
            let samples = match &network {
                Some(network) => Samples::given(flag, texts, options, network, &columns, console)?,
                None => Samples::plain(flag, texts, options, &columns, console)?,
            };
            let samples = samples.preprocessed_as(&options.preprocess, stored, console)?;
            samples.hint(network.as_ref(), console)?;
            Ok::<_, Failure>(samples)
        };
        let samples = open("--eval", &self.eval, &self.data.eval_options())?;
        let known = match &self.data.data[..] {
            [] => None,
            texts => Some(open("--data", texts, &self.data.options())?),
        };
        let start = Instant::now();
        let bar = console.context();
        let psi = functions.eval_data(&samples.inputs, &bar).map_err(failure)?;
        report.seconds = start.elapsed().as_secs_f64();
        (report.samples, report.evaluated) = (samples.n_samples, Some(samples.n_samples));
        self.folder.create(self.learn.resume())?;
        self.folder.write("values.npy", functions.values())?;
        self.folder.write("psi.npy", &psi)?;
        if let Some(known) = &known {
            let items = functions.eval_data(&known.inputs, &bar).map_err(failure)?;
            self.folder.write("psi_data.npy", &items)?;
            report.codes = codes::scores((&items, known.labels.as_ref()), (&psi, samples.labels.as_ref()))?;
        }
        self.draw(&samples.inputs, &psi, &report.values, samples.labels.as_ref())
    }
}
