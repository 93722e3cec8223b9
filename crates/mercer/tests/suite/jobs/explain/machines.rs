//! Several machines on one kernel.

use super::{case, explained, read};
use mercer::job::ExplainJob;
use mercer::job::explain::{SurrogateMachine, SurrogateSpec};

/// Machines that are compared are those that would be fitted alone; the first one explains.
#[test]
fn machines_are_compared_on_the_same_kernel() {
    let place = tempfile::tempdir().expect("a folder");
    let other_machines = vec![SurrogateMachine::Sgd, SurrogateMachine::Neighbours, SurrogateMachine::Glm];
    let kernels = vec!["normalised(trace)".to_owned(), "ck".to_owned()];
    let job = ExplainJob { other_machines, kernels, ..case().job() };
    let together = explained(&job, &place.path().join("together"));
    assert_eq!(together.surrogates.len(), 6, "three machines on two kernels; glm is fitted once");
    for machine in [SurrogateMachine::Sgd, SurrogateMachine::Neighbours] {
        let surrogate = SurrogateSpec { machine, ..SurrogateSpec::default() };
        let single = ExplainJob { surrogate, rows: Vec::new(), ..case().job() };
        let alone = explained(&single, &place.path().join(machine.to_string()));
        let own = |kernel: &str| {
            let all = together.surrogates.iter();
            all.filter(|own| own.machine == machine && own.kernel == kernel).count()
        };
        assert_eq!((own("normalised(trace)"), own("ck")), (1, 1));
        let same = together.surrogates.iter().find(|own| own.machine == machine && own.kernel == "normalised(trace)");
        let same = same.expect("the same surrogate");
        assert_eq!(same.faithfulness, alone.surrogates[0].faithfulness);
    }
    // The recommended surrogate is not compared with itself or with a worse one of the same kernel, and every sentence is
    // there once.
    let advice = &together.recommendation;
    let (advised, best) = (&advice[0], &together.surrogates[0]);
    let of_advised = together.surrogates.iter().find(|own| own.sees == mercer::job::explain::Sight::AllParameters);
    let of_advised = of_advised.expect("a tangent kernel");
    assert!(advised.starts_with(&format!("Use {} with {}:", of_advised.kernel, of_advised.machine)), "{advice:?}");
    assert!(
        advised.contains("the most faithful")
            || advised.contains(&format!("; {} with {} has", best.kernel, best.machine))
    );
    assert!((1..advice.len()).all(|at| !advice[..at].contains(&advice[at])), "{advice:?}");
    let first = explained(&ExplainJob { other_machines: Vec::new(), ..case().job() }, &place.path().join("first"));
    assert_eq!(first.surrogates[0].machine, SurrogateMachine::Glm);
    let [together, alone] = ["together", "first"].map(|name| read(&place.path().join(name), "scores.npy"));
    assert_eq!(together, alone);
}
