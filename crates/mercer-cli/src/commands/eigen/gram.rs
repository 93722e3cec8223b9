//! `--gram`: the eigenvectors of a matrix, or functions that are learnt from it and the samples of its rows.

use super::report::EigenReport;
use super::results::{Given, compared};
use super::solve::failure;
use super::{EigenArguments, check_eval};
use crate::console::Console;
use crate::failure::Failure;
use crate::format::bytes;
use crate::options::Samples;
use mercer::data::Source;
use mercer::kernel::gram::KeptGram;
use mercer::kernel::{KernelError, Real};
use mercer::run::Context;
use mercer::spectral::learnt::Matrices;
use mercer::spectral::{Solver, Spectrum, Truth};
use ndarray::{Array2, ArrayD};
use std::path::Path;
use std::time::Instant;

/// A Gram matrix of a file or a store.
struct Matrix<T> {
    /// Square.
    entries: Array2<T>,
    /// Rows of a sample.
    per_sample: usize,
    /// The fingerprint of the samples it was computed from, if it says so.
    data: Option<String>,
}

impl EigenArguments {
    pub(super) fn of_gram<T: Real>(
        &self,
        path: &Path,
        report: &mut EigenReport,
        console: &Console,
    ) -> Result<(), Failure> {
        let matrix = Matrix::<T>::open(path, console)?;
        report.kernel = Some(path.display().to_string());
        let diagonal = matrix.entries.diag();
        report.mean_diagonal = Some(diagonal.iter().map(|v| v.wide()).sum::<f64>() / diagonal.len() as f64);
        if self.method().is_learnt() {
            return self.learnt_from(path, matrix, report, console);
        }
        let gram = matrix.entries.view();
        let start = Instant::now();
        let spectrum = Spectrum::of_matrix(gram, self.k, self.solver(), console.context()).map_err(failure)?;
        report.seconds = start.elapsed().as_secs_f64();
        report.samples = gram.nrows();
        report.values = spectrum.values.to_vec();
        report.repairs = spectrum.repairs;
        if self.truth {
            let truth = Spectrum::of_matrix(gram, self.k, Solver::Full, console.context()).map_err(failure)?;
            let truth = Truth::of_spectrum(truth);
            report.truth = Some(compared(&spectrum.values.to_vec(), &spectrum.functions, None, &truth)?);
        }
        self.folder.create(self.learn.resume())?;
        self.folder.write("values.npy", &spectrum.values)?;
        self.folder.write("psi_data.npy", &spectrum.functions)?;
        self.draw(&[], &spectrum.functions, &report.values, None)
    }

    /// Networks learn the functions of the samples that the rows of a matrix belong to.
    fn learnt_from<T: Real>(
        &self,
        path: &Path,
        matrix: Matrix<T>,
        report: &mut EigenReport,
        console: &Console,
    ) -> Result<(), Failure> {
        let samples = Samples::plain("--data", &self.data.data, &self.data.options(), &[], console)?;
        let eval = match &self.eval[..] {
            [] => None,
            texts => Some(Samples::plain("--eval", texts, &self.data.eval_options(), &samples.columns, console)?),
        };
        check_eval(eval.as_ref(), &samples)?;
        matrix.check_samples(path, &samples, console)?;
        let Matrix { entries, per_sample, .. } = matrix;
        let task = self.task(&samples.inputs, per_sample);
        let network = task.network(&self.learn)?;
        task.advise(&self.learn, console)?;
        let truth = match self.truth {
            true => {
                let spectrum =
                    Spectrum::of_matrix(entries.view(), self.k, Solver::Full, console.context()).map_err(failure)?;
                if eval.is_some() {
                    console.note("note: a matrix does not say what its exact functions are on --eval: --truth measures --data alone");
                }
                Some(Truth::of_spectrum(spectrum))
            }
            false => None,
        };
        let mut coupling = Matrices::new(entries, per_sample).map_err(failure)?;
        self.folder.create(self.learn.resume())?;
        let bar = console.context();
        let start = Instant::now();
        let found = self.learn.of_coupling(network, &mut coupling, &task, &self.course(&bar))?;
        report.seconds = start.elapsed().as_secs_f64();
        self.keep(found, Given { samples: &samples, eval: eval.as_ref(), kernel: None, truth }, report, &bar)
    }
}

impl<T: Real> Matrix<T> {
    /// A matrix of a store, the sum of its layers, or of a file.
    fn open(path: &Path, console: &Console) -> Result<Self, Failure> {
        let wrong = |shape: &[usize]| {
            Failure::new(format!("{}: an array of shape {shape:?} is no Gram matrix", path.display()))
                .hint("a square matrix, of samples with themselves")
        };
        let sizes = |shape: &[usize]| match *shape {
            [n, m] if n == m && n > 0 => Ok((n, 1)),
            [n, c, m, d] if n == m && c == d && n * c > 0 => Ok((n * c, c)),
            _ => Err(wrong(shape)),
        };
        let kept = KeptGram::open(&Source::new(path, None)).map_err(unreadable)?;
        // The sum, and a layer that is added to it.
        check_memory::<T>(path, sizes(&kept.shape())?.0, kept.n_parts().min(2), console.context())?;
        let data = kept.data().map(str::to_owned);
        let array: ArrayD<T> = kept.read(console.context()).map_err(unreadable)?;
        let shape = array.shape().to_vec();
        let (rows, per_sample) = sizes(&shape)?;
        let entries = array.as_standard_layout().into_owned().into_shape_with_order((rows, rows));
        Ok(Self { entries: entries.map_err(|_| wrong(&shape))?, per_sample, data })
    }

    /// A row, or as many as there are outputs, for every sample.
    fn check_samples(&self, path: &Path, samples: &Samples, console: &Console) -> Result<(), Failure> {
        let (rows, count) = (self.entries.nrows() / self.per_sample, samples.n_samples);
        if rows != count {
            let text = format!("{}: a matrix of {rows} samples, but --data has {count}", path.display());
            return Err(Failure::new(text).hint("row i of the matrix belongs to row i of the data"));
        }
        if self.data.as_ref().is_some_and(|data| samples.fingerprint().is_ok_and(|own| own != *data)) {
            console.note(&format!(
                "note: {} was computed from other numbers than those of --data; its rows must belong to the same samples",
                path.display()
            ));
        }
        Ok(())
    }
}

fn unreadable(error: KernelError) -> Failure {
    match error {
        KernelError::Data(error) => (*error).into(),
        KernelError::Store(error) => (*error).into(),
        other => Failure::new(format!("--gram {other}")),
    }
}

/// Refuses a matrix that does not fit before it is read.
fn check_memory<T>(path: &Path, rows: usize, copies: usize, context: &Context) -> Result<(), Failure> {
    let (needed, free) = (rows.saturating_mul(rows).saturating_mul(copies * size_of::<T>()), context.memory());
    if needed <= free {
        return Ok(());
    }
    let text =
        format!("{}: {rows} × {rows} numbers need {}, but {} are free", path.display(), bytes(needed), bytes(free));
    Err(Failure::new(text).hint("--precision f32 halves it; --kernel or --net with --method nystrom needs no matrix"))
}
