//! States of runs that learn, damaged: an error that names the file, or the run as it would have been; never a panic.

use crate::damage::{Damage, damages};
use crate::learnt::networks;
use crate::problems::{Problem, RBF, points};
use mercer_data::Dataset;
use mercer_kernel::Real;
use mercer_run::{Context, Listener};
use mercer_spectral::SpectralError;
use mercer_spectral::learnt::{Batches, Learn, LearningMethod, LearningSettings, Learnt, Matrices, Nesting, Pairs};
use ndarray::Array2;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is learnt, and from what.
#[derive(Clone, Copy, Debug)]
struct Case {
    method: LearningMethod,
    shared: bool,
    pairs: bool,
}

/// Stops a run after some steps.
struct Stop(AtomicUsize);

impl Listener for Stop {
    fn progress(&self, _: usize, _: usize, _: &str) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn run<T: Real>(case: Case, problem: &Problem, folder: &Path, steps: usize) -> Result<Array2<T>, SpectralError> {
    let settings = LearningSettings::new(case.method).steps(8);
    let stop = Context::listening(Stop(AtomicUsize::new(steps)));
    let learn = Learn::new(settings).context(&stop).resume(true).folder(folder);
    let network = networks(2, 3, 1, case.shared);
    let learnt: Learnt<T> = if case.pairs {
        let second = [Dataset::from_array("second", (&problem.points + 0.01).into_dyn().view())?];
        learn.run(network, &mut Pairs::given(&problem.data, &second, 8, 0, &Context::new())?)?
    } else {
        let mut kernel = Matrices::new(problem.gram.mapv(T::narrow), 1)?;
        learn.run(network, &mut Batches::new(&problem.data, &mut kernel, 16, 0, &Context::new())?)?
    };
    learnt.before[0].eval_data(&problem.data, &Context::new())
}

fn check<T: Real>(case: Case) {
    let problem = Problem::new("rbf", RBF, points(30, 2, 1.0), 3);
    let folder = tempfile::tempdir().expect("a folder");
    let stopped = run::<T>(case, &problem, folder.path(), 4);
    assert!(matches!(stopped, Err(SpectralError::Cancelled)), "{case:?}");
    let path = folder.path().join("state.safetensors");
    let whole = std::fs::read(&path).expect("a state");
    let damaged = damages(&path);
    let names: Vec<&str> = damaged.iter().filter_map(|damage| damage.tensor.as_deref()).collect();
    assert!(names.iter().any(|name| name.starts_with("average/0/")), "{case:?}: {names:?}");
    for Damage { what, tensor, bytes } in damaged {
        std::fs::write(&path, bytes).expect("writes");
        let text = match run::<T>(case, &problem, folder.path(), usize::MAX) {
            Ok(_) => panic!("{case:?}, {what}: not refused"),
            Err(error) => error.to_string(),
        };
        assert!(text.contains("state.safetensors"), "{case:?}, {what}: {text}");
        assert!(tensor.is_none_or(|tensor| text.contains(&format!("{tensor:?}"))), "{case:?}, {what}: {text}");
    }
    // The state of another method, and what is no file.
    std::fs::write(&path, &whole).expect("writes");
    let other = Case { method: LearningMethod::Nested(Nesting::None), ..case };
    let text = run::<T>(other, &problem, folder.path(), usize::MAX).expect_err("refused").to_string();
    assert!(text.contains("another run"), "{text}");
    std::fs::remove_file(&path).expect("removes");
    std::fs::create_dir(&path).expect("makes a folder");
    assert!(run::<T>(case, &problem, folder.path(), usize::MAX).is_err());
    std::fs::remove_dir(&path).expect("removes");
    // As it was, the run goes on to where it would have been.
    std::fs::write(&path, whole).expect("writes");
    let other = tempfile::tempdir().expect("a folder");
    let expected = run::<T>(case, &problem, other.path(), usize::MAX).expect("learns");
    assert_eq!(run::<T>(case, &problem, folder.path(), usize::MAX).expect("resumes"), expected, "{case:?}");
}

#[test]
fn damaged_states_are_refused() {
    let case = |method, shared| Case { method, shared, pairs: false };
    check::<f64>(case(LearningMethod::Spin, false));
    check::<f64>(case(LearningMethod::Spin, true));
    check::<f32>(case(LearningMethod::NeuralEf, false));
    check::<f32>(case(LearningMethod::NeuralEf, true));
    check::<f64>(case(LearningMethod::Nested(Nesting::Joint), true));
    check::<f32>(Case { pairs: true, ..case(LearningMethod::NeuralEf, true) });
}
