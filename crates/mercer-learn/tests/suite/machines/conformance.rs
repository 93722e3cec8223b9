//! What every machine does: the same again when refitted, nothing new when samples change places, typed errors for what
//! makes no sense, the same after a visit to the disk. That a machine which is not fitted predicts cannot be written.
//! Posteriors and ensembles, which are not fitted on [`SampleRows`], are in `beyond`.

use super::sets::{labels, rbf, rows, targets};
use mercer_data::faults::forge;
use mercer_data::folder::Folder;
use mercer_data::{Classes, Existing};
use mercer_learn::classification::{BinaryLogistic, By, Glm, NearestCentre, NearestNeighbours, SgdGlm, Svm};
use mercer_learn::process::{ProcessClassification, ProcessRegression};
use mercer_learn::regression::{Decomposition, Filter, IterativeRidge, LeastSquares, Ridge};
use mercer_learn::{Fit, KernelMachine, LearnError, Machine, Predict, Result, SampleRows};
use ndarray::{Array2, Axis, array, s};

pub(crate) const N: usize = 40;

/// What is known of samples.
#[derive(Clone)]
pub(crate) enum Known {
    Numbers(Array2<f64>),
    Classes(Classes),
}

impl Known {
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(numbers.select(Axis(0), rows)),
            Self::Classes(classes) => {
                let indices = rows.iter().map(|&row| classes.indices()[row]).collect();
                Self::Classes(Classes::new(indices, classes.names().len()).unwrap())
            }
        }
    }
}

type Fitter = Box<dyn Fn(&SampleRows<'_>, &Known) -> Result<Machine>>;

struct Member {
    name: &'static str,
    fit: Fitter,
    /// Zero for regressions.
    n_classes: usize,
    /// Its solver does not depend on the order of samples beyond this.
    order: f64,
    /// It fits a single sample, or samples of one class.
    one_is_enough: bool,
    /// Gram matrix and features of the linear kernel give the same machine, up to this.
    dual: Option<f64>,
}

/// A macro, because a bound `F: Fit<Array2<f64>>` is more than the compiler can solve (`Array2` has a projection inside).
macro_rules! regression {
    ($name:literal, $order:literal, $dual:literal, $settings:expr) => {{
        let settings = $settings;
        let fit: Fitter = Box::new(move |samples, known| match known {
            Known::Numbers(numbers) => Ok(settings.fit(samples, numbers)?.into()),
            Known::Classes(_) => unreachable!("a regression is given numbers"),
        });
        Member { name: $name, fit, n_classes: 0, order: $order, one_is_enough: true, dual: Some($dual) }
    }};
}

fn classifier<F>(name: &'static str, n_classes: usize, order: f64, dual: Option<f64>, settings: F) -> Member
where
    F: Fit<Classes> + 'static,
    Machine: From<F::Machine>,
{
    let fit: Fitter = Box::new(move |samples, known| match known {
        Known::Classes(classes) => Ok(settings.fit(samples, classes)?.into()),
        Known::Numbers(_) => unreachable!("a classifier is given classes"),
    });
    Member { name, fit, n_classes, order, one_is_enough: false, dual }
}

fn members() -> Vec<Member> {
    members_for(1.0)
}

/// The settings with which a kernel `scale` times as large gives the same machines.
fn members_for(scale: f64) -> Vec<Member> {
    let filter = move |samples: &SampleRows<'_>, known: &Known| match known {
        Known::Numbers(y) => {
            Ok(Decomposition::new(samples)?.fit(&Filter::Flow { time: 50.0 / scale }, y.view())?.into())
        }
        Known::Classes(_) => unreachable!("a regression is given numbers"),
    };
    let iterative = move |samples: &SampleRows<'_>, known: &Known| match known {
        Known::Numbers(y) => {
            Ok(IterativeRidge::new(0.1 * scale, 1e-12)?.precondition(5, 1).fit(samples, y)?.machine.into())
        }
        Known::Classes(_) => unreachable!("a regression is given numbers"),
    };
    let lone =
        |fit: Fitter, name, order| Member { name, fit, n_classes: 0, order, one_is_enough: true, dual: Some(1e-9) };
    vec![
        regression!("ridge", 1e-10, 1e-9, Ridge::new(0.1 * scale).unwrap()),
        regression!("centred ridge", 1e-10, 1e-9, Ridge::new(0.1 * scale).unwrap().centred()),
        // A pseudo-inverse of the kernel form has half of the digits.
        regression!("least squares", 1e-6, 1e-6, LeastSquares::new().with_cutoff(1e-9).unwrap()),
        regression!("process", 1e-10, 1e-9, ProcessRegression::new(0.1 * scale).unwrap()),
        lone(Box::new(filter), "gradient flow", 1e-9),
        lone(Box::new(iterative), "iterative ridge", 1e-9),
        // The penalty is on coefficients, so Gram matrix and features are two machines.
        classifier("glm", 3, 1e-4, None, Glm::new(scale * scale).unwrap().until(1e-8, 500).unwrap()),
        classifier("logistic", 2, 1e-7, Some(1e-7), BinaryLogistic::new(0.5 * scale).unwrap()),
        classifier("svm", 3, 1e-3, Some(1e-3), Svm::new(1.0 / scale).unwrap().with_tolerance(1e-5).unwrap()),
        classifier("process classifier", 3, 1e-7, Some(1e-7), ProcessClassification),
        Member {
            one_is_enough: true,
            ..classifier("neighbours", 3, 1e-12, Some(1e-12), NearestNeighbours::new(1).unwrap())
        },
        Member {
            one_is_enough: true,
            ..classifier("similar", 3, 1e-12, Some(1e-12), NearestNeighbours::new(1).unwrap().by(By::Kernel))
        },
        Member { one_is_enough: true, ..classifier("centres", 3, 1e-12, Some(1e-12), NearestCentre) },
        // Draws its own order of samples, so theirs matters.
        classifier("sgd", 3, f64::INFINITY, None, SgdGlm::new(1).max_passes(50)),
    ]
}

impl Member {
    fn known(&self, x: &Array2<f64>) -> Known {
        match self.n_classes {
            0 => Known::Numbers(targets(x.view())),
            n_classes => Known::Classes(labels(x.view(), n_classes)),
        }
    }
}

pub(crate) fn close(name: &str, a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    assert_eq!(a.dim(), b.dim(), "{name}");
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{name}: {worst:e} is more than {tolerance:e}");
}

/// Kernel and features of the same training and other samples.
struct Problem {
    x: Array2<f64>,
    gram: Array2<f64>,
    cross: Array2<f64>,
    others: Array2<f64>,
}

fn problem() -> Problem {
    let (x, others) = (rows(N, 3, "training"), rows(7, 3, "others"));
    Problem { gram: rbf(x.view(), x.view()), cross: rbf(others.view(), x.view()), x, others }
}

#[test]
fn refit_gives_the_same_bits_and_disk_changes_nothing() {
    let Problem { x, gram, cross, others } = problem();
    for member in members() {
        let known = member.known(&x);
        let views = [
            (SampleRows::Gram(gram.view()), SampleRows::Gram(cross.view())),
            (SampleRows::Features(x.view()), SampleRows::Features(others.view())),
        ];
        for (training, new) in views {
            let machine = (member.fit)(&training, &known).unwrap();
            let first = machine.predict(&new).unwrap();
            assert!(first.iter().all(|v| v.is_finite()), "{}", member.name);
            assert_eq!((member.fit)(&training, &known).unwrap().predict(&new).unwrap(), first, "{}", member.name);
            let folder = tempfile::tempdir().unwrap();
            let saved = KernelMachine::from(machine.clone());
            saved.save(folder.path(), Existing::Refuse).unwrap();
            let loaded = KernelMachine::load(folder.path()).unwrap().machine;
            assert_eq!(loaded.predict(&new).unwrap(), first, "{}", member.name);
            assert_eq!(loaded.repairs(), machine.repairs(), "{}", member.name);
            assert!(saved.save(folder.path(), Existing::Refuse).is_err());
            saved.save(folder.path(), Existing::Replace).unwrap();
            if let (Some(a), Some(b)) = (machine.as_classifier(), loaded.as_classifier()) {
                assert_eq!(a.decide(&new).unwrap(), b.decide(&new).unwrap());
                if let Ok(probabilities) = a.probabilities(&new) {
                    assert!(probabilities.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
                    assert_eq!(probabilities.ncols(), member.n_classes);
                }
            }
        }
    }
}

#[test]
fn the_order_of_samples_does_not_matter() {
    let Problem { x, gram, cross, .. } = problem();
    let order: Vec<usize> = (0..N).map(|i| (i * 17 + 3) % N).collect();
    let turned = gram.select(Axis(0), &order).select(Axis(1), &order);
    let turned_cross = cross.select(Axis(1), &order);
    for member in members() {
        let known = member.known(&x);
        let first = (member.fit)(&SampleRows::Gram(gram.view()), &known).unwrap();
        let second = (member.fit)(&SampleRows::Gram(turned.view()), &known.select(&order)).unwrap();
        let first = first.predict(&SampleRows::Gram(cross.view())).unwrap();
        close(member.name, &second.predict(&SampleRows::Gram(turned_cross.view())).unwrap(), &first, member.order);
    }
}

/// The unit of a kernel is a convention: with penalties in the same unit nothing changes, and predictions have the unit of targets.
#[test]
fn units_do_not_matter() {
    let Problem { x, gram, cross, .. } = problem();
    let scale = 4.0;
    let (large, large_cross) = (&gram * scale, &cross * scale);
    for (member, scaled) in members().into_iter().zip(members_for(scale)) {
        let known = member.known(&x);
        let machine = (member.fit)(&SampleRows::Gram(gram.view()), &known).unwrap();
        let first = machine.predict(&SampleRows::Gram(cross.view())).unwrap();
        // A process prior without amplitude has its unit in the kernel, and steps of fixed size have one of their own.
        if !["process classifier", "sgd"].contains(&member.name) {
            let second = (scaled.fit)(&SampleRows::Gram(large.view()), &known).unwrap();
            let second = second.predict(&SampleRows::Gram(large_cross.view())).unwrap();
            // Squared distances to centres are scores in the unit of the kernel.
            let unit = if member.name == "centres" { scale } else { 1.0 };
            close(member.name, &(second / unit), &first, member.order);
        }
        if let Known::Numbers(numbers) = &known {
            let doubled = (member.fit)(&SampleRows::Gram(gram.view()), &Known::Numbers(numbers * 2.0)).unwrap();
            let doubled = doubled.predict(&SampleRows::Gram(cross.view())).unwrap();
            close(member.name, &doubled, &(first * 2.0), member.order);
        }
    }
}

/// The linear kernel and its features are two views of one machine.
#[test]
fn gram_and_features_agree() {
    let Problem { x, others, .. } = problem();
    let (gram, cross) = (x.dot(&x.t()), others.dot(&x.t()));
    for member in members() {
        let Some(tolerance) = member.dual else { continue };
        let known = member.known(&x);
        let dual = (member.fit)(&SampleRows::Gram(gram.view()), &known).unwrap();
        let primal = (member.fit)(&SampleRows::Features(x.view()), &known).unwrap();
        let scores = dual.predict(&SampleRows::Gram(cross.view())).unwrap();
        close(member.name, &primal.predict(&SampleRows::Features(others.view())).unwrap(), &scores, tolerance);
    }
}

#[test]
fn large_and_small_scales_stay_finite() {
    let Problem { x, .. } = problem();
    for scale in [1e-8, 1e8] {
        let features = &x * scale;
        // Steps of these two have a scale of their own: at 10⁸ they would go on for minutes.
        for member in members().into_iter().filter(|member| !["sgd", "svm"].contains(&member.name)) {
            let known = member.known(&x);
            match (member.fit)(&SampleRows::Features(features.view()), &known) {
                Ok(machine) => {
                    let scores = machine.predict(&SampleRows::Features(features.view())).unwrap();
                    assert!(scores.iter().all(|v| v.is_finite()), "{} {scale}", member.name);
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

/// Squares of these overflow: a machine whose numbers are not finite is none, and what is one survives the disk.
#[test]
fn huge_numbers_give_a_finite_machine_or_an_error() {
    let Problem { x, gram, .. } = problem();
    let checked =
        |member: &Member, samples: &SampleRows<'_>, known: &Known, what: &str| match (member.fit)(samples, known) {
            Ok(machine) => {
                let finite =
                    machine.numbers().iter().all(|(_, numbers)| numbers.iter().all(|number| number.is_finite()));
                assert!(finite, "{}: {what}", member.name);
                let folder = tempfile::tempdir().unwrap();
                KernelMachine::from(machine).save(folder.path(), Existing::Refuse).unwrap();
                assert!(KernelMachine::load(folder.path()).is_ok(), "{}: {what}", member.name);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        };
    for member in members() {
        let known = member.known(&x);
        // Steps of these two have a scale of their own, and would go on for minutes.
        if !["sgd", "svm"].contains(&member.name) {
            checked(&member, &SampleRows::Features((&x * 1e300).view()), &known, "features");
            checked(&member, &SampleRows::Gram((&gram * 1e300).view()), &known, "a Gram matrix");
        }
        if let Known::Numbers(numbers) = &known {
            for scale in [1e150, 1e300] {
                let huge = Known::Numbers(numbers * scale);
                checked(&member, &SampleRows::Gram(gram.view()), &huge, "targets");
                checked(&member, &SampleRows::Features(x.view()), &huge, "targets");
                checked(&member, &SampleRows::Gram((&gram * 1e-200).view()), &huge, "targets of a small kernel");
            }
        }
    }
}

/// Cases that once gave infinite weights, or a likelihood that no file can hold, and no word.
#[test]
fn overflowing_weights_are_refused() {
    let Problem { x, gram, .. } = problem();
    let huge = targets(x.view()) * 1e300;
    let small = &gram * 1e-12;
    let flow = Decomposition::new(&SampleRows::Gram(small.view())).unwrap();
    let found = flow.fit(&Filter::Flow { time: 1e14 }, huge.view());
    assert!(matches!(found, Err(LearnError::NotFinite { what: "weights" })), "{found:?}");
    let found = ProcessRegression::new(0.1).unwrap().fit(&SampleRows::Gram(gram.view()), &huge);
    assert!(matches!(found, Err(LearnError::NotFinite { what: "marginal likelihood" })), "{found:?}");
}

#[test]
fn one_class_missing_is_reported() {
    let Problem { x, gram, cross, .. } = problem();
    for member in members().into_iter().filter(|member| member.n_classes > 0) {
        let indices: Vec<usize> = labels(x.view(), 2).indices().iter().map(|&class| [0, 2][class]).collect();
        let known = Known::Classes(Classes::new(indices, 4).unwrap());
        let machine = (member.fit)(&SampleRows::Gram(gram.view()), &known).unwrap();
        assert_eq!(machine.repairs().len(), 2, "{}: {:?}", member.name, machine.repairs());
        let classifier = machine.as_classifier().unwrap();
        assert!(classifier.decide(&SampleRows::Gram(cross.view())).unwrap().iter().all(|class| [0, 2].contains(class)));
        if let Ok(probabilities) = classifier.probabilities(&SampleRows::Gram(cross.view())) {
            assert_eq!(probabilities.dim(), (cross.nrows(), 4));
            assert!(probabilities.column(1).iter().chain(probabilities.column(3)).all(|p| *p == 0.0));
        }
    }
}

#[test]
fn one_sample_or_one_class() {
    let Problem { x, gram, .. } = problem();
    for member in members() {
        let one = SampleRows::Gram(gram.slice(s![..1, ..1]));
        let known = member.known(&x).select(&[0]);
        match (member.fit)(&one, &known) {
            Ok(machine) => {
                assert!(member.one_is_enough, "{}", member.name);
                assert!(machine.predict(&one).unwrap().iter().all(|v| v.is_finite()));
            }
            Err(error) => {
                assert!(matches!(error, LearnError::OneClass { .. }), "{}: {error}", member.name);
                assert!(!member.one_is_enough);
            }
        }
        let empty = SampleRows::Gram(gram.slice(s![..0, ..0]));
        assert!((member.fit)(&empty, &member.known(&x).select(&[])).is_err(), "{}", member.name);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let Problem { x, gram, cross, others } = problem();
    for member in members() {
        let known = member.known(&x);
        let mut broken = gram.clone();
        broken[(3, 4)] = f64::NAN;
        let refused = (member.fit)(&SampleRows::Gram(broken.view()), &known);
        assert!(matches!(refused, Err(LearnError::Algebra(_))), "{}", member.name);
        let mut lopsided = gram.clone();
        lopsided[(3, 4)] += 0.5;
        assert!((member.fit)(&SampleRows::Gram(lopsided.view()), &known).is_err(), "{}", member.name);
        let mut features = x.clone();
        features[(0, 0)] = f64::INFINITY;
        assert!((member.fit)(&SampleRows::Features(features.view()), &known).is_err(), "{}", member.name);
        let short = known.select(&(0..N - 1).collect::<Vec<_>>());
        assert!(matches!((member.fit)(&SampleRows::Gram(gram.view()), &short), Err(LearnError::Shape { .. })));
        let machine = (member.fit)(&SampleRows::Gram(gram.view()), &known).unwrap();
        let narrow = machine.predict(&SampleRows::Gram(cross.slice(s![.., 1..])));
        assert!(matches!(narrow, Err(LearnError::Shape { .. })), "{}", member.name);
        let other = machine.predict(&SampleRows::Features(others.view()));
        assert!(matches!(other, Err(LearnError::Basis { .. })), "{}", member.name);
        let mut broken = cross.clone();
        broken[(0, 0)] = f64::NAN;
        assert!(machine.predict(&SampleRows::Gram(broken.view())).is_err(), "{}", member.name);
    }
}

/// Must end in a result whose repair is reported, or in a typed error: all samples the same, targets that do not vary.
#[test]
fn singular_problems_are_repaired_or_refused() {
    let x = Array2::from_elem((12, 3), 0.5);
    let ones = Array2::ones((12, 12));
    for member in members() {
        let known = match member.n_classes {
            0 => Known::Numbers(Array2::from_elem((12, 2), 3.0)),
            n_classes => Known::Classes(Classes::new((0..12).map(|i| i % n_classes).collect(), n_classes).unwrap()),
        };
        for samples in [SampleRows::Gram(ones.view()), SampleRows::Features(x.view())] {
            let machine = (member.fit)(&samples, &known).unwrap();
            assert!(machine.predict(&samples).unwrap().iter().all(|v| v.is_finite()), "{}", member.name);
        }
    }
    let y = array![[1.0], [2.0], [3.0]];
    let gram = Array2::ones((3, 3));
    let exact = Ridge::new(0.0).unwrap().fit(&SampleRows::Gram(gram.view()), &y).unwrap();
    assert!(exact.repairs().iter().any(|repair| repair.to_string().contains("added to the diagonal")));
    let least = LeastSquares::new().fit(&SampleRows::Gram(gram.view()), &y).unwrap();
    assert!(least.repairs().iter().any(|repair| repair.to_string().contains("1 of 3")), "{:?}", least.repairs());
    assert!((least.predict(&SampleRows::Gram(gram.view())).unwrap()[(0, 0)] - 2.0).abs() < 1e-12);
    let constant = Ridge::new(1.0).unwrap().centred();
    let constant = constant.fit(&SampleRows::Gram(gram.view()), &array![[2.0], [2.0], [2.0]]).unwrap();
    assert_eq!(constant.repairs().len(), 1);
    let nothing = LeastSquares::new().fit(&SampleRows::Gram(Array2::zeros((3, 3)).view()), &y);
    assert!(matches!(nothing, Err(LearnError::Undefined { .. })));
    let indefinite = Ridge::new(0.0).unwrap().fit(&SampleRows::Gram((-&gram).view()), &y);
    assert!(matches!(indefinite, Err(LearnError::Algebra(_))));
}

#[test]
fn settings_are_checked_before_anything_is_fitted() {
    assert!(Ridge::new(-1.0).is_err() && Ridge::new(f64::NAN).is_err());
    assert!(Glm::new(0.0).is_err() && Svm::new(f64::INFINITY).is_err() && BinaryLogistic::new(0.0).is_err());
    assert!(NearestNeighbours::new(0).is_err() && ProcessRegression::new(-1e-3).is_err());
    assert!(
        LeastSquares::new().with_cutoff(1.0).is_err() && LeastSquares::new().with_weights(array![1.0, 0.0]).is_err()
    );
    assert!(IterativeRidge::new(0.0, 1e-6).is_err());
}

#[test]
fn bad_folders_are_refused() {
    let Problem { x, gram, .. } = problem();
    for member in members() {
        let machine = (member.fit)(&SampleRows::Gram(gram.view()), &member.known(&x)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        KernelMachine::from(machine).save(folder.path(), Existing::Refuse).unwrap();
        let json = folder.path().join("folder.json");
        let manifest = std::fs::read(&json).unwrap();
        for (from, to) in [
            ("\"kind_version\": 1", "\"kind_version\": 2"),
            ("\"kind_version\": 1", "\"kind_version\": 0"),
            ("\"kind\": \"machine\"", "\"kind\": \"other\""),
            ("\"kind\": \"", "\"kind\": \"un"),
            ("{", ""),
        ] {
            forge(folder.path(), from, to);
            let refused = KernelMachine::load(folder.path());
            assert!(matches!(refused, Err(LearnError::Data(_))), "{}: {to}: {refused:?}", member.name);
            std::fs::write(&json, &manifest).unwrap();
        }
        // Every array, one after the other: a bit flipped, too short, another one, and missing.
        for entry in std::fs::read_dir(folder.path().join("objects")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let mut flipped = bytes.clone();
            flipped[bytes.len() - 3] ^= 4;
            // Features are none for a Gram matrix, and not read.
            let is_empty = bytes.len() == 128;
            for damaged in [&flipped, &bytes[..bytes.len() - 8]] {
                std::fs::write(&path, damaged).unwrap();
                let error = KernelMachine::load(folder.path());
                let named = |error: LearnError| error.to_string().contains(&path.display().to_string());
                assert!(is_empty || error.is_err_and(named), "{}", path.display());
                assert_eq!(Folder::open(folder.path(), None).unwrap().verify().len(), 1);
            }
            std::fs::remove_file(&path).unwrap();
            assert!(is_empty || KernelMachine::load(folder.path()).is_err(), "{}", path.display());
            std::fs::write(&path, bytes).unwrap();
        }
        assert!(KernelMachine::load(folder.path()).is_ok());
    }
}
