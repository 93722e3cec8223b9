//! Flags of one method are refused with another.

use super::{EigenArguments, MethodName};
use clap::ValueEnum;
use mercer::Error;

impl MethodName {
    /// As the user writes it.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn is_learnt(self) -> bool {
        matches!(self, Self::Spin | Self::Neuralef | Self::Shared | Self::Contrastive)
    }
}

impl EigenArguments {
    /// Settings of another method than the one that is used are refused instead of ignored.
    pub(super) fn check_flags(&self) -> Result<(), Error> {
        let method = self.method.unwrap_or(MethodName::Exact);
        let products = matches!(method, MethodName::Lanczos | MethodName::Randomised);
        if self.matrix_free.is_some() && (!products || self.gram.is_some()) {
            return Err(Error::new("‹matrix-free› is for ‹method› lanczos and randomised, with ‹net›"));
        }
        let settings = [
            ("‹landmarks›", self.landmarks.is_some(), MethodName::Nystrom),
            ("‹n-landmarks›", self.n_landmarks.is_some(), MethodName::Nystrom),
            ("‹n-features›", self.n_features.is_some(), MethodName::Rff),
            ("‹orthogonal›", self.orthogonal, MethodName::Rff),
        ];
        let contrastive = self.pairs.given().map(|flag| (flag, true, MethodName::Contrastive));
        let mut settings = settings.into_iter().chain(contrastive);
        if let Some((flag, _, method)) = settings.find(|(_, given, method)| *given && self.method != Some(*method)) {
            return Err(Error::new(format!("{flag} is for ‹method› {}", method.name())));
        }
        if method == MethodName::Spin && self.learn.has_objective() {
            return Err(Error::new("‹objective›: SpIN has its own").hint("‹method› neuralef or shared"));
        }
        if let Some(flag) = self.learn.given().filter(|_| !method.is_learnt()) {
            return Err(Error::new(format!("{flag} is for methods that learn"))
                .hint("‹method› neuralef, shared, spin or contrastive"));
        }
        if self.load.is_some() && (self.kernel.is_given() || self.truth) {
            let flag = if self.truth { "‹truth›" } else { "a kernel" };
            return Err(Error::new(format!("‹load› evaluates what was found before; {flag} means nothing to it")));
        }
        Ok(())
    }
}
