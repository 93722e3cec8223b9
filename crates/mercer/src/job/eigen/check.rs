//! Settings that go together, and settings that do not.

use super::{EigenJob, EigenMethod, EigenSource};
use crate::Error;

impl EigenJob {
    /// Settings that mean nothing together are refused instead of ignored.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.k == 0 {
            return Err(Error::new("‹k› 0: take at least one function"));
        }
        let contrastive = matches!(self.method, EigenMethod::Contrastive { .. });
        if contrastive && (self.of.is_some() || self.truth) {
            let other = if self.truth { "‹truth›" } else { "a kernel" };
            return Err(Error::new(format!(
                "‹method› contrastive: pairs stand for the kernel; {other} means nothing to it"
            ))
            .hint("‹functions› MODEL.onnx names a network to begin with"));
        }
        match &self.of {
            None if !contrastive => {
                return Err(Error::new("there is neither a kernel nor a matrix nor a folder")
                    .hint("‹kernel› FORMULA, ‹net› MODEL.onnx ‹kind› KIND, ‹gram› STORE or ‹load› DIR"));
            }
            Some(EigenSource::Gram(_)) => self.check_gram()?,
            _ if self.data.data.is_empty() => {
                return Err(Error::new("there are no data").hint("‹data› FILE[:KEY]"));
            }
            Some(EigenSource::Kernel(kernel)) => kernel.check()?,
            None => {}
        }
        if self.eval_labels.is_some() && self.data.labels.is_none() {
            return Err(Error::new("‹eval-labels›: there are no ‹labels› of ‹data› to look them up by"));
        }
        if let Some(keep) = self.method.learning().map(|learning| learning.keep)
            && !(0.0..1.0).contains(&keep)
        {
            return Err(Error::new(format!("‹keep› {keep}: accepted are shares from 0 to below 1")));
        }
        Ok(())
    }

    /// What goes with a matrix.
    fn check_gram(&self) -> Result<(), Error> {
        let name = self.method.name();
        if matches!(self.method, EigenMethod::Nystrom { .. } | EigenMethod::Rff { .. }) {
            return Err(Error::new("‹gram›: nystrom and rff need a kernel, not its matrix").hint(
                "‹kernel› or ‹net› instead of ‹gram›; or ‹method› exact, lanczos, randomised, neuralef, shared, spin",
            ));
        }
        if self.method.matrix_free().is_some() {
            return Err(Error::new("‹matrix-free› is for ‹method› lanczos and randomised, with ‹net›"));
        }
        match (self.method.learning().is_some(), self.data.data.is_empty(), self.eval.is_empty()) {
            (true, true, _) => Err(Error::new(format!(
                "‹method› {name}: networks learn from the samples that the rows of the matrix belong to"
            ))
            .hint("‹data› FILE[:KEY]")),
            (false, false, _) => {
                Err(Error::new(format!("‹data›: ‹method› {name} looks at the matrix of ‹gram› alone"))
                    .hint("‹kernel› or ‹net› instead of ‹gram›; or ‹method› neuralef, shared or spin"))
            }
            (false, _, false) => Err(Error::new("‹eval›: a matrix says nothing about new samples")
                .hint("‹kernel› or ‹net› instead of ‹gram›, with the data; or ‹method› neuralef, shared or spin")),
            _ => Ok(()),
        }
    }
}
