//! Attributions of networks with shuffled weights.

use super::{case, explained};
use mercer::job::ExplainJob;
use mercer::job::explain::{ValidateSpec, Validation};

/// The fewer layers are left as they were trained, the less the attributions agree; a kernel that does not see the
/// network agrees with itself.
#[test]
fn attributions_depend_on_the_weights() {
    let place = tempfile::tempdir().expect("a folder");
    let validate = Some(ValidateSpec { kind: Validation::Sanity, ..ValidateSpec::default() });
    let stages = |kernel: &str| {
        let job = ExplainJob { kernels: vec![kernel.to_owned()], validate: validate.clone(), ..case().job() };
        let found = explained(&job, &place.path().join(kernel));
        found.validation.expect("validated").sanity
    };
    let tangent = stages("normalised(trace)");
    assert_eq!(tangent.iter().map(|stage| stage.n_shuffled).collect::<Vec<_>>(), [1, 2, 3]);
    let mean = |at: usize| tangent[at].correlation.as_ref().expect("defined").mean;
    assert!(mean(0) < 1.0 && mean(2) < mean(0), "{} {}", mean(0), mean(2));
    assert!(tangent[2].network_accuracy.expect("labels") < 0.9);
    for stage in stages("rbf(lengthscale=3)") {
        assert!((stage.correlation.expect("defined").mean - 1.0).abs() < 1e-9);
    }
}
