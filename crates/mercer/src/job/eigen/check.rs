//! Settings that go together, and settings that do not.

use super::{EigenJob, EigenMethod, EigenSource};
use crate::Error;

impl EigenJob {
    /// Contradictory settings are rejected, not ignored.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.k == 0 {
            return Err(Error::new("‹k› 0: must be at least one"));
        }
        let contrastive = matches!(self.method, EigenMethod::Contrastive { .. });
        if contrastive && (self.of.is_some() || self.truth) {
            let other = if self.truth { "‹truth›" } else { "a kernel" };
            return Err(Error::new(format!("contrastive: pairs take the place of a kernel; it cannot use {other}"))
                .hint("‹functions› MODEL.onnx names a network to start from"));
        }
        match &self.of {
            None if !contrastive => {
                return Err(Error::new("there is neither a kernel nor a matrix")
                    .hint("‹kernel› 'rbf(lengthscale=2)', ‹net› MODEL.onnx ‹kernel› trace, or ‹gram› FILE"));
            }
            Some(EigenSource::Gram(_)) => self.check_gram()?,
            _ if self.data.data.is_empty() => {
                return Err(Error::new("there are no data").hint("‹data› FILE[:KEY]"));
            }
            Some(EigenSource::Kernel(kernel)) => kernel.check()?,
            None => {}
        }
        if self.eval_labels.is_some() && self.data.labels.is_none() {
            return Err(Error::new("‹test-labels› need the ‹labels› of ‹data›, which they are looked up in"));
        }
        if let Some(keep) = self.method.learning().map(|learning| learning.keep)
            && !(0.0..1.0).contains(&keep)
        {
            return Err(Error::new(format!("‹keep› {keep}: must be at least 0 and below 1")));
        }
        Ok(())
    }

    /// What goes with a matrix.
    fn check_gram(&self) -> Result<(), Error> {
        let name = self.method.name();
        if matches!(self.method, EigenMethod::Nystrom { .. } | EigenMethod::Rff { .. }) {
            return Err(Error::new("‹gram›: nystrom and rff need a kernel, not its matrix").hint(
                "‹kernel› or ‹net› instead of ‹gram›; or the methods exact, lanczos, randomised, neuralef, shared and spin",
            ));
        }
        if self.method.matrix_free().is_some() {
            return Err(Error::new("‹matrix-free› needs a network's kernel: ‹net› instead of ‹gram›"));
        }
        match (self.method.learning().is_some(), self.data.data.is_empty(), self.eval.is_empty()) {
            (true, true, _) => {
                Err(Error::new(format!("{name}: networks learn from the samples of the matrix"))
                    .hint("‹data› FILE[:KEY]"))
            }
            (false, false, _) => Err(Error::new(format!("‹data›: {name} uses only the matrix of ‹gram›"))
                .hint("‹kernel› or ‹net› instead of ‹gram›; or the methods neuralef, shared and spin")),
            (false, _, false) => Err(Error::new("‹test›: a matrix says nothing about new samples")
                .hint("‹kernel› or ‹net› instead of ‹gram›, with the data; or the methods neuralef, shared and spin")),
            _ => Ok(()),
        }
    }
}
