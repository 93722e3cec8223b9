//! Kernel regression with the pseudo-NTK of all of CIFAR-10, from a store.

use crate::experiment::{Experiment, Needs};
use crate::explain::cifar::{network, part};
use crate::options::Options;
use crate::report::{Cell, Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::data::Source;
use mercer::job::{KernelJob, PredictJob};
use mercer::kernel::gram::KeptGram;
use mercer::kernel::store::Store;
use mercer::learn::metrics::accuracy;
use mercer::learn::regression::{IterativeRidge, Ridge};
use mercer::learn::{Fit, Predict, SampleRows};
use mercer::run::{Context, peak_memory};
use mercer::spec::{DataSpec, KernelSpec, Precision};
use ndarray::{Array2, ArrayView2, Axis, Ix2, concatenate, s};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "pseudo-ntk-regression",
    group: "Kernels",
    title: "Regression with the pseudo-NTK of all images",
    paper: "Mohamadi and Sutherland 2022, arXiv 2206.12543",
    claim: "With the pseudo-NTK, kernel regression on all of CIFAR-10 is within reach; trained weights improve its test accuracy over initial \
        ones (figure 9).",
    published: "as figures only, for four architectures and several widths.",
    setting: "The exact pseudo-NTK of a ResNet-20 of 91.7 % in single precision, in a store, computed within `--memory` GiB. Ridge \
        regression by conjugate gradients in double precision on the tiles of the store, which are read for every product and never held \
        together, with Nyström's preconditioner of rank `--rank`. The paper has no ridge; ours are shares of the mean of the diagonal, and all \
        that were tried are shown, so none was chosen by the test images. Two sets of targets are solved at once: classes as rows with a \
        single one, and, as in the paper's equation 6, what the network's outputs leave of them, to which these are added again. For \
        comparison features of `--sketch` numbers (SJLT) of the same kernel, and of the same architecture with random weights (with scales \
        and shifts instead of batch normalisation). 14 GB on the disk for all images. The store is resumed when it was interrupted; its \
        seconds are then those of the last run.",
    cost: 14_400,
    needs: &[Needs::Cifar10],
    options: &["samples", "test", "memory", "rank", "products", "sketch", "only"],
    threads: 0,
    run,
};

/// Ridges, as shares of the mean of the diagonal.
const RIDGES: [f64; 3] = [1.0, 1e-1, 1e-2];

/// The relative residual at which conjugate gradients stop.
const TOLERANCE: f64 = 1e-3;

const RANDOM: &str = "sketched, random weights";

const INITIAL: &str = "[resnet]\ndepth = 20\noutputs = 10\n";

/// A solved regression.
#[derive(Serialize, Deserialize)]
struct Solved {
    /// Of the classes, and of the network's outputs with what was learnt about the rest.
    accuracies: [f64; 2],
    /// Products with the matrix and the residual they reached; nothing for a direct solution.
    products: Option<usize>,
    residual: Option<f64>,
    fitting: f64,
    predicting: f64,
    peak: f64,
}

/// The images, and what the network says about them.
struct Task<'a> {
    work: &'a Work,
    train: DataSpec,
    test: DataSpec,
    /// Targets: classes, and what the outputs leave of them.
    targets: Array2<f64>,
    /// The outputs on the test images.
    outputs: Array2<f64>,
    test_classes: Vec<usize>,
    memory: usize,
    seed: u64,
}

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let (samples, test) = (options.number("samples", 50_000, 80)?, options.number("test", 10_000, 40)?);
    let (rank, products) = (options.number("rank", 500, 10)?, options.number("products", 500, 200)?);
    let sketch = options.number("sketch", 4096, 64)?;
    let memory = options.number::<usize>("memory", 8, 2)? << 30;
    let folder = options.set(Needs::Cifar10)?;
    let task = Task::new(
        &work,
        [part(&work, &folder, true, 0..samples)?, part(&work, &folder, false, 0..test)?],
        (memory, options.seed),
    )?;
    let own = accuracy(&decided(task.outputs.view()), &task.test_classes)?;
    let mut table = Table::new("Accuracies on the test images; seconds of phases.")
        .column("kernel", Format::Plain)
        .column("ridge", Format::Scientific(0))
        .column("accuracy", Format::Percent(2))
        .column("with the network's outputs", Format::Percent(2))
        .column("products", Format::Plain)
        .column("residual", Format::Scientific(1));
    for name in ["kernel of training images", "with test images", "solution", "prediction"] {
        table = table.column(format!("{name}, s"), Format::Fixed(0));
    }
    let mut table = table.column("peak GiB", Format::Fixed(2)).column("GB on disk", Format::Fixed(2));
    let (mut best, mut notes) = ([None::<f64>; 2], Vec::new());
    if options.wants("exact") {
        let stores = task.stores("exact", &KernelSpec::new("pseudo").with_net(network()))?;
        for ridge in RIDGES.into_iter().take(if options.quick { 1 } else { RIDGES.len() }) {
            let solved = task.solved_on_store(&stores, ridge, (rank, products));
            match solved {
                Ok(solved) => {
                    best[0] = Some(best[0].unwrap_or(0.0).max(solved.accuracies[0]));
                    table.push(line("exact", ridge, Some(&solved), &stores)?);
                }
                Err(error) => {
                    table.push(line("exact", ridge, None, &stores)?);
                    notes.push(format!("Ridge {ridge:e}: {error}"));
                }
            }
        }
    }
    let kernel = format!("pseudo(sketch=sjlt:{sketch})");
    let initial = KernelSpec { arch: Some(work.architecture("initial", INITIAL)?), ..KernelSpec::new(&kernel) };
    for (at, (name, spec)) in [("sketched", KernelSpec::new(&kernel).with_net(network())), (RANDOM, initial)]
        .into_iter()
        .enumerate()
        .filter(|(_, (name, _))| options.wants(name))
    {
        let features = task.features(name, &spec)?;
        for ridge in RIDGES {
            let solved = task.solved_on_features(&features, ridge)?;
            if at == 1 {
                best[1] = Some(best[1].unwrap_or(0.0).max(solved.accuracies[0]));
            }
            table.push(line(name, ridge, Some(&solved), &features)?);
        }
    }
    table.push(row!["the network itself", "", own, "", "", "", "", "", "", "", "", ""]);
    let holds = best[0].zip(best[1]).map(|(trained, initial)| trained > initial);
    Ok(Report { tables: vec![table], notes, holds, earlier: work.earlier(), ..Report::default() })
}

impl<'a> Task<'a> {
    fn new(work: &'a Work, [train, test]: [DataSpec; 2], (memory, seed): (usize, u64)) -> Fallible<Self> {
        let outputs = |data: &DataSpec, name: &str| -> Fallible<Array2<f64>> {
            let job = PredictJob::network(network(), data.clone());
            matrix(&work.array_of(name, &job, "npy", None)?.folder)
        };
        let (known, unseen) = (outputs(&train, "outputs")?, outputs(&test, "test-outputs")?);
        let (classes, test_classes) = (classes(&train)?, classes(&test)?);
        let mut one_hot = Array2::zeros(known.dim());
        classes.iter().enumerate().for_each(|(row, &class)| one_hot[(row, class)] = 1.0);
        let targets = concatenate(Axis(1), &[one_hot.view(), (&one_hot - &known).view()])?;
        Ok(Self { work, train, test, targets, outputs: unseen, test_classes, memory, seed })
    }

    fn job(&self, spec: &KernelSpec, data: &DataSpec) -> KernelJob {
        KernelJob {
            kernel: KernelSpec { seed: self.seed, ..spec.clone() },
            data: DataSpec { labels: None, ..data.clone() },
            against: Vec::new(),
            by_layer: false,
            features: false,
            precision: Precision::F32,
            tiles: None,
            part: None,
        }
    }

    /// The kernel of the training images, and of the test images with them.
    fn stores(&self, name: &str, spec: &KernelSpec) -> Fallible<[Done; 2]> {
        let across = KernelJob { against: self.train.data.clone(), ..self.job(spec, &self.test) };
        let store = |name: &str, job: &KernelJob| self.work.array_of(name, job, "zarr", Some(self.memory));
        Ok([store(name, &self.job(spec, &self.train))?, store(&format!("{name}-test"), &across)?])
    }

    /// The features of both sets.
    fn features(&self, name: &str, spec: &KernelSpec) -> Fallible<[Done; 2]> {
        let name = name.replace(", ", "-").replace(' ', "-");
        let store = |name: &str, data: &DataSpec| {
            let job = KernelJob { features: true, ..self.job(spec, data) };
            self.work.array_of(name, &job, "zarr", Some(self.memory))
        };
        Ok([store(&name, &self.train)?, store(&format!("{name}-test"), &self.test)?])
    }

    /// Conjugate gradients on the tiles of a store.
    fn solved_on_store(&self, stores: &[Done; 2], ridge: f64, (rank, products): (usize, usize)) -> Fallible<Solved> {
        let [own, across] = stores.each_ref().map(|done| done.folder.as_path());
        self.work.once("exact-ridge", &(own, across, ridge, rank, products, TOLERANCE, self.seed), || {
            let context = Context::new().with_memory(self.memory);
            let _ = std::fs::write("/proc/self/clear_refs", "5");
            let start = Instant::now();
            let kept = KeptGram::open(&Source::new(own, None))?;
            let operator = kept.operator::<f64>(&context)?;
            let penalty = ridge * operator.diagonal()?.mean().ok_or("there are no samples")?;
            let method = IterativeRidge::new(penalty, TOLERANCE)?.precondition(rank, self.seed);
            let found = method.max_iterations(products).fit_operator(&operator, self.targets.view(), &context);
            if let Some(error) = operator.failure() {
                return Err(error.into());
            }
            let found = found?;
            let fitting = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let scores = rows_of(across, |rows| Ok(found.machine.predict(&SampleRows::Gram(rows))?))?;
            Ok(Solved {
                products: Some(found.iterations),
                residual: Some(found.residual),
                ..self.solved(&scores, fitting, start.elapsed().as_secs_f64())?
            })
        })
    }

    /// The normal equations of features.
    fn solved_on_features(&self, features: &[Done; 2], ridge: f64) -> Fallible<Solved> {
        let [own, across] = features.each_ref().map(|done| done.folder.as_path());
        self.work.once("sketched-ridge", &(own, across, ridge), || {
            let _ = std::fs::write("/proc/self/clear_refs", "5");
            let start = Instant::now();
            let rows = matrix(own)?;
            let diagonal = rows.iter().map(|x| x * x).sum::<f64>() / rows.nrows() as f64;
            let method = Ridge::new(ridge * diagonal)?;
            let machine = method.fit(&SampleRows::Features(rows.view()), &self.targets)?;
            drop(rows);
            let fitting = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let scores = rows_of(across, |rows| Ok(machine.predict(&SampleRows::Features(rows))?))?;
            self.solved(&scores, fitting, start.elapsed().as_secs_f64())
        })
    }

    fn solved(&self, scores: &Array2<f64>, fitting: f64, predicting: f64) -> Fallible<Solved> {
        let n_classes = self.outputs.ncols();
        let rest = &scores.slice(s![.., n_classes..]) + &self.outputs;
        let share = |scores: ArrayView2<'_, f64>| accuracy(&decided(scores), &self.test_classes);
        let accuracies = [share(scores.slice(s![.., ..n_classes]))?, share(rest.view())?];
        let peak = peak_memory() as f64 / (1 << 30) as f64;
        Ok(Solved { accuracies, products: None, residual: None, fitting, predicting, peak })
    }
}

fn classes(data: &DataSpec) -> Fallible<Vec<usize>> {
    let labels = data.labels.as_ref().ok_or("no labels")?.to_string();
    Ok(Source::new(labels, None).open()?.read::<f64>()?.iter().map(|&class| class as usize).collect())
}

/// A file or a store as a whole.
fn matrix(path: &Path) -> Fallible<Array2<f64>> {
    Ok(match path.extension().is_some_and(|extension| extension == "zarr") {
        true => {
            let store = Store::open(path)?;
            store.read_all::<f64>(&first(&store)?)?.into_dimensionality()?
        }
        false => Source::new(path, None).open()?.read::<f64>()?.into_dimensionality()?,
    })
}

fn first(store: &Store) -> Fallible<String> {
    Ok(store.layout().arrays.first().cloned().ok_or("an empty store")?)
}

/// Something of every block of rows of a store.
fn rows_of(path: &Path, of: impl Fn(ArrayView2<'_, f64>) -> Fallible<Array2<f64>>) -> Fallible<Array2<f64>> {
    let store = Store::open(path)?;
    let name = first(&store)?;
    let mut found: Option<Array2<f64>> = None;
    for block in 0..store.layout().row_blocks() {
        let rows = store.read_row_block::<f64>(&name, block)?.into_dimensionality::<Ix2>()?;
        let own = of(rows.view())?;
        match &mut found {
            Some(found) => found.append(Axis(0), own.view())?,
            None => found = Some(own),
        }
    }
    found.ok_or_else(|| format!("{}: there are no rows", path.display()).into())
}

/// The class of the largest score of every row.
fn decided(scores: ArrayView2<'_, f64>) -> Vec<usize> {
    let largest = |row: ndarray::ArrayView1<'_, f64>| {
        row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(class, _)| class)
    };
    scores.outer_iter().map(largest).collect()
}

fn line(name: &str, ridge: f64, solved: Option<&Solved>, stores: &[Done; 2]) -> Fallible<Vec<Cell>> {
    let mut cells = row![name, ridge];
    // The outputs are those of the trained network.
    let of_trained = |at: usize| at == 0 || name != RANDOM;
    cells.extend([0, 1].map(|at| Cell::from(solved.filter(|_| of_trained(at)).map(|own| own.accuracies[at]))));
    cells.push(solved.and_then(|own| own.products).into());
    cells.push(solved.and_then(|own| own.residual).into());
    cells.extend(stores.each_ref().map(|store| Cell::from(store.seconds)));
    cells.extend([solved.map(|own| own.fitting), solved.map(|own| own.predicting)].map(Cell::from));
    let peak = stores.iter().map(|store| store.peak() / (1 << 30) as f64).chain(solved.map(|own| own.peak));
    cells.push(peak.reduce(f64::max).into());
    cells.push(((stores[0].bytes()? + stores[1].bytes()?) as f64 / 1e9).into());
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mercer::prelude::KernelFn;

    #[test]
    fn stores_are_read_by_rows_and_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let x = Array2::from_shape_fn((300, 2), |(row, at)| ((3 * row + at) as f64).sin());
        let kernel = KernelFn::new("rbf()", None).unwrap();
        let path = place.path().join("gram.zarr");
        kernel.store(&x, &path).unwrap();
        let (gram, read) = (kernel.gram(&x).unwrap(), matrix(&path).unwrap());
        assert_eq!(gram, read);
        assert_eq!(rows_of(&path, |rows| Ok(rows.to_owned())).unwrap(), read);
        assert_eq!(decided(gram.slice(s![..3, ..3])), [0, 1, 2]);
    }
}
