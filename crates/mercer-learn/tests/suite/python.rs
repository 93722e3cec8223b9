//! Machines on one small problem, which `tests/python/test_machines.py` compares with scikit-learn and SciPy.

use mercer_data::random::stream;
use mercer_data::{Classes, Existing, write_npy};
use mercer_kernel::classic::Formula;
use mercer_learn::classification::{BinaryLogistic, Glm, NearestCentre, NearestNeighbours, Svm};
use mercer_learn::metrics::{area_under_precision_recall, area_under_roc, kendall_tau, r_squared};
use mercer_learn::process::{ProcessClassification, ProcessRegression, Tune};
use mercer_learn::regression::{IterativeRidge, Ridge};
use mercer_learn::{Classify, Fit, Predict, SampleRows};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayBase, Data, Dimension};
use rand::RngExt;
use std::path::{Path, PathBuf};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

struct Folder(PathBuf);

impl Folder {
    fn write<S: Data<Elem = f64>, D: Dimension>(&self, name: &str, array: &ArrayBase<S, D>) -> Fallible<()> {
        Ok(write_npy(&self.0.join(format!("{name}.npy")), array, Existing::Replace)?)
    }

    fn classes(&self, name: &str, classes: &[usize]) -> Fallible<()> {
        self.write(name, &classes.iter().map(|&class| class as f64).collect::<Array1<f64>>())
    }
}

#[test]
fn machines_for_python() -> Fallible<()> {
    let folder = Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines"));
    std::fs::create_dir_all(&folder.0)?;
    let mut random = stream(11, "machines");
    let mut rows = |n: usize| Array2::from_shape_simple_fn((n, 4), || 4.0 * random.random::<f64>() - 2.0);
    let (x, z) = (rows(120), rows(40));
    let class = |row: ndarray::ArrayView1<'_, f64>| {
        if row[0] * row[1] > 0.8 { 2 } else { usize::from(row[2] + 0.3 * row[3] > 0.0) }
    };
    let many = Classes::new(x.outer_iter().map(class).collect(), 3)?;
    let two = Classes::new(x.outer_iter().map(|row| usize::from(class(row) == 1)).collect(), 2)?;
    let targets = Array2::from_shape_fn((120, 2), |(i, j)| (x[(i, j)] * 1.5).sin() + 0.3 * x[(i, 2)] * x[(i, 3)]);
    for (name, array) in [("x", &x), ("z", &z), ("targets", &targets)] {
        folder.write(name, array)?;
    }
    folder.classes("many", many.indices())?;
    folder.classes("two", two.indices())?;
    let kernel: Formula = "rbf(lengthscale=1.3)".parse()?;
    let (gram, cross) = (kernel.gram(x.view())?, kernel.cross(z.view(), x.view())?);
    folder.write("gram", &gram)?;
    folder.write("cross", &cross)?;
    let (training, new) = (SampleRows::Gram(gram.view()), SampleRows::Gram(cross.view()));
    let (features, new_features) = (SampleRows::Features(x.view()), SampleRows::Features(z.view()));

    folder.write("ridge", &Ridge::new(0.3)?.fit(&training, &targets)?.predict(&new)?)?;
    folder.write("ridge_features", &Ridge::new(0.3)?.fit(&features, &targets)?.predict(&new_features)?)?;
    let iterative = IterativeRidge::new(0.3, 1e-12)?.precondition(20, 0);
    folder.write("ridge_iterative", &iterative.fit(&training, &targets)?.predict(&new)?)?;

    let process = ProcessRegression::new(0.05)?.fit(&training, &targets)?;
    let posterior = process.posterior(&new, Array1::ones(40).view())?;
    folder.write("process_means", &posterior.means)?;
    folder.write("process_variances", &posterior.variances)?;
    folder.write("process_likelihood", &Array1::from_elem(1, process.log_likelihood()))?;
    // With noise, so that the likelihood has its maximum inside.
    let noisy = Array2::from_shape_fn((120, 1), |(i, _)| targets[(i, 0)] + 0.3 * (random.random::<f64>() - 0.5));
    folder.write("tuned_targets", &noisy)?;
    let start: Formula = "1*rbf(lengthscale=1)".parse()?;
    let tuned = Tune { noise: 0.1, centred: false, restarts: 2, seed: 0 }.run(
        &start,
        x.view(),
        noisy.view(),
        &Context::new(),
    )?;
    folder.write("tuned_likelihood", &Array1::from_elem(1, tuned.log_likelihood))?;
    let classifier = ProcessClassification.fit(&training, &two)?;
    folder.write("process_classes", &classifier.posterior_probabilities(&new, Array1::ones(40).view())?)?;
    folder.write("process_classes_likelihood", &Array1::from_elem(1, classifier.log_likelihood()))?;

    let glm = Glm::new(2.0)?.until(1e-9, 5000)?;
    folder.write("glm", &glm.fit(&training, &many)?.probabilities(&new)?)?;
    folder.write("probe", &glm.fit(&features, &many)?.probabilities(&new_features)?)?;
    folder.write("probe_balanced", &glm.balanced().fit(&features, &many)?.probabilities(&new_features)?)?;
    let logistic = BinaryLogistic::new(0.5)?;
    folder.write("logistic", &logistic.fit(&features, &two)?.probabilities(&new_features)?)?;
    let svm = Svm::new(1.5)?.with_tolerance(1e-6)?;
    folder.write("svm", &svm.fit(&training, &many)?.predict(&new)?)?;
    folder.write("svm_two", &svm.fit(&training, &two)?.predict(&new)?)?;
    folder.write("svm_features", &svm.fit(&features, &many)?.predict(&new_features)?)?;
    let neighbours = NearestNeighbours::new(7)?;
    folder.write("neighbours", &neighbours.fit(&features, &many)?.probabilities(&new_features)?)?;
    folder.classes("neighbours_gram", &neighbours.fit(&training, &many)?.decide(&new)?)?;
    folder.classes("centres", &NearestCentre.fit(&features, &many)?.decide(&new_features)?)?;

    let a: Vec<f64> = (0..5000).map(|_| (random.random::<f64>() * 200.0).floor()).collect();
    let b: Vec<f64> = a.iter().map(|a| (a + random.random::<f64>() * 300.0).floor() * 0.5).collect();
    let positive: Vec<bool> = a.iter().map(|a| *a > 120.0).collect();
    folder.write("ranks_a", &Array1::from_vec(a.clone()))?;
    folder.write("ranks_b", &Array1::from_vec(b.clone()))?;
    let measures = [
        kendall_tau(&a, &b)?,
        area_under_roc(&b, &positive)?,
        area_under_precision_recall(&b, &positive)?,
        r_squared(Array1::from_vec(b).view(), Array1::from_vec(a).view())?,
    ];
    folder.write("measures", &Array1::from_iter(measures))
}
