//! The effect of leaving a training sample out of a machine on the kernel.

use super::{Method, Problem, slopes};
use crate::Error;
use crate::job::surrogate::KernelRows;
use mercer_kernel::Real;
use mercer_learn::surrogate::{
    DualGlm, DualMachine, DualRidge, DualRows, GlmInfluence, Influence, PenaltyNorm, RidgeInfluence, one_hot,
};
use mercer_run::Context;
use ndarray::Array2;

/// Penalties, relative to the mean of `κ(x, x)`.
const PENALTIES: [f64; 5] = [1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// Training samples up to which the multinomial model is looked at: it holds two matrices of that side per class.
const MOST_MULTINOMIAL: usize = 2_000;

impl Problem<'_> {
    /// Machines fitted to the labels, with all penalties. The best penalty is chosen later.
    pub(super) fn leave_one_out<T: Real>(&self, rows: &KernelRows<T>, context: &Context) -> Result<Vec<Method>, Error> {
        let (_, targets) = one_hot(&self.known.classes)?;
        let scale = rows.mean_diagonal()?;
        let mut queries = Array2::zeros((self.classes.len(), self.known.samples.n_samples));
        rows.visit(self.test, &self.known.samples.inputs, context, &mut |first, strip| {
            strip.outer_iter().enumerate().for_each(|(at, row)| queries.row_mut(first + at).assign(&row));
            Ok(())
        })?;
        let gram = rows.gram()?;
        let own = DualRows::Gram(gram.view());
        let (mut ridge, mut multinomial) = (Vec::new(), Vec::new());
        for penalty in PENALTIES {
            let settings = DualRidge::new(penalty * scale)?.centred();
            let machine = settings.fit(own, targets.view(), context)?;
            let influence = RidgeInfluence::new(&settings, own, targets.view(), context)?;
            ridge.push((Some(penalty), self.effects(&machine, &influence, &queries, context)?));
            if self.known.samples.n_samples <= MOST_MULTINOMIAL {
                let settings = DualGlm::new(penalty * scale, PenaltyNorm::Function)?;
                let machine = settings.fit(own, targets.view(), context)?;
                let influence = GlmInfluence::new(&settings, own, targets.view(), &machine, context)?;
                multinomial.push((Some(penalty), self.effects(&machine, &influence, &queries, context)?));
            }
        }
        let mut methods = vec![Method { name: "leave-one-out".to_owned(), candidates: ridge }];
        if !multinomial.is_empty() {
            methods.push(Method { name: "leave-one-out, glm".to_owned(), candidates: multinomial });
        }
        Ok(methods)
    }

    /// What every training sample adds to the log-odds of the test samples.
    fn effects(
        &self,
        machine: &DualMachine,
        influence: &dyn Influence,
        queries: &Array2<f64>,
        context: &Context,
    ) -> Result<Array2<f64>, Error> {
        let slopes = slopes(machine.scores(queries.view())?.view(), self.classes);
        let mut found = Array2::<f64>::zeros(queries.dim());
        for class in 0..machine.n_outputs() {
            let effects = influence.effects(&DualRows::Gram(queries.view()), class, context)?;
            for ((mut sum, own), slope) in found.outer_iter_mut().zip(effects.outer_iter()).zip(slopes.column(class)) {
                sum.scaled_add(-slope, &own);
            }
        }
        Ok(found)
    }
}
