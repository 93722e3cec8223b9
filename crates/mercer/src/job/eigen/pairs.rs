//! Functions of pairs of views, without an explicit kernel.

use super::learn::Learning;
use super::results::Given;
use super::{EigenFindings, EigenJob, Task, Views, check_eval, input, inputs_of};
use crate::Error;
use crate::job::Outcome;
use crate::spec::{Opening, Samples};
use mercer_kernel::Real;
use mercer_spectral::learnt::{Augmentation, Pairs};

/// Samples with their other views.
pub(super) struct PairProblem {
    pub(super) samples: Samples,
    eval: Option<Samples>,
    views: Opened,
    learning: Learning,
}

enum Opened {
    Given(Samples),
    Augmented(Augmentation),
}

impl PairProblem {
    pub(super) fn open(job: &EigenJob, opening: Opening<'_>) -> Result<Self, Error> {
        let samples = Samples::plain("data", &job.data.data, &job.data, &[], opening)?;
        let eval = match &job.eval[..] {
            [] => None,
            data => {
                let options = job.eval_data().learnt_from(&samples);
                Some(Samples::plain("test", data, &options, &samples.columns, opening)?)
            }
        };
        check_eval(eval.as_ref(), &samples)?;
        let views = match job.method.views() {
            Some(Views::Pairs(data)) => {
                let data = std::slice::from_ref(data);
                let options = job.data.reading(data, None).learnt_from(&samples);
                let second = Samples::plain("pairs", data, &options, &samples.columns, opening)?;
                check_pairs(&second, &samples)?;
                Opened::Given(second)
            }
            Some(Views::Augmented(augmentation)) => {
                let shape = samples.inputs[0].sample_shape();
                augmentation.check(shape).map_err(|error| {
                    Error::from(error).hint(match shape.len() {
                        2 => "‹layout› nhw for images without an axis of channels",
                        _ => "‹pairs› FILE gives the other views, ‹crop› 1 only adds noise",
                    })
                })?;
                Opened::Augmented(*augmentation)
            }
            None => return Err(Error::new("pairs of views are for the method contrastive")),
        };
        let learning = Learning::new(job, &samples.inputs, 1, opening.context)?;
        Ok(Self { samples, eval, views, learning })
    }

    pub(super) fn run<T: Real>(
        self,
        task: Task<'_>,
        mut findings: EigenFindings,
    ) -> Result<Outcome<EigenFindings>, Error> {
        let Self { samples, eval, views, learning } = self;
        let mut inputs = inputs_of(&samples, eval.as_ref())?;
        findings.kernel = Some(match &views {
            Opened::Given(second) => {
                inputs.push(input("pairs", second.places(), second.fingerprint()?));
                format!("pairs with {}", second.places())
            }
            Opened::Augmented(_) => "pairs of random views".to_owned(),
        });
        let found = {
            let _phase = task.context.phase("learning");
            let (data, size, seed) = (&samples.inputs[..], learning.batch(), task.job.seed);
            let mut pairs = match &views {
                Opened::Given(second) => Pairs::<T>::given(data, &second.inputs, size, seed, task.context)?,
                Opened::Augmented(changes) => Pairs::augmented(data, *changes, size, seed, task.context)?,
            };
            learning.learnt(&mut pairs, &task)?
        };
        let given = Given { samples: &samples, eval: eval.as_ref(), kernel: None, truth: None, inputs };
        task.keep(found, given, findings)
    }
}

fn check_pairs(second: &Samples, samples: &Samples) -> Result<(), Error> {
    if second.n_samples != samples.n_samples || second.shapes() != samples.shapes() {
        let text = format!(
            "‹pairs› has {} samples of shape {:?}, ‹data› has {} of {:?}",
            second.n_samples,
            second.shapes(),
            samples.n_samples,
            samples.shapes()
        );
        return Err(Error::new(text).hint("row i of one is the other view of row i of the other"));
    }
    Ok(())
}
