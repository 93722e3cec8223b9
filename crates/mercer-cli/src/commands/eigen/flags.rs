//! Flags that go together, and flags that do not.

use super::{EigenArguments, MethodName};
use crate::failure::Failure;

impl EigenArguments {
    /// What goes with a matrix.
    fn check_gram(&self) -> Result<(), Failure> {
        let method = self.method();
        if matches!(method, MethodName::Nystrom | MethodName::Rff) {
            return Err(Failure::new("--gram: nystrom and rff need a kernel, not its matrix").hint(
                "--kernel or --net instead of --gram; or --method exact, lanczos, randomised, neuralef, shared, spin",
            ));
        }
        match (method.is_learnt(), self.data.data.is_empty(), self.eval.is_empty()) {
            (true, true, _) => Err(Failure::new(format!(
                "--method {}: networks learn from the samples that the rows of the matrix belong to",
                method.name()
            ))
            .hint("--data FILE[:KEY]")),
            (false, false, _) => {
                Err(Failure::new(format!("--data: --method {} looks at the matrix of --gram alone", method.name()))
                    .hint("--kernel or --net instead of --gram; or --method neuralef, shared or spin"))
            }
            (false, _, false) => Err(Failure::new("--eval: a matrix says nothing about new samples")
                .hint("--kernel or --net instead of --gram, with the data; or --method neuralef, shared or spin")),
            _ => Ok(()),
        }
    }

    /// Flags that mean nothing together are refused instead of ignored.
    pub(super) fn check_flags(&self) -> Result<(), Failure> {
        let method = self.method();
        let contrastive = method == MethodName::Contrastive;
        if self.k == 0 {
            return Err(Failure::new("-k 0: take at least one function"));
        }
        if self.gram.is_none() && self.load.is_none() {
            if !self.kernel.is_given() && !contrastive {
                return Err(Failure::new("there is neither a kernel nor a matrix nor a folder")
                    .hint("--kernel FORMULA, --net MODEL.onnx --kind KIND, --gram STORE or --load DIR"));
            }
            if self.data.data.is_empty() {
                return Err(Failure::new("there are no data").hint("--data FILE[:KEY]"));
            }
            if !contrastive {
                self.kernel.check()?;
            }
        }
        if contrastive && (self.kernel.is_given() || self.gram.is_some() || self.truth) {
            let flag = if self.truth { "--truth" } else { "a kernel" };
            return Err(Failure::new(format!(
                "--method contrastive: pairs stand for the kernel; {flag} means nothing to it"
            ))
            .hint("--functions MODEL.onnx names a network to begin with"));
        }
        if self.data.eval_labels.is_some() && self.load.is_none() && self.data.labels.is_none() {
            return Err(Failure::new("--eval-labels: there are no --labels of --data to look them up by"));
        }
        let products = matches!(method, MethodName::Lanczos | MethodName::Randomised);
        if self.matrix_free.is_some() && (!products || self.gram.is_some()) {
            return Err(Failure::new("--matrix-free is for --method lanczos and randomised, with --net"));
        }
        if self.gram.is_some() {
            self.check_gram()?;
        }
        self.check_settings()?;
        if self.load.is_some() && (self.kernel.is_given() || self.truth) {
            let flag = if self.truth { "--truth" } else { "a kernel" };
            return Err(Failure::new(format!("--load evaluates what was found before; {flag} means nothing to it")));
        }
        if let Some(load) = &self.load
            && let (Ok(from), Ok(to)) = (load.canonicalize(), self.folder.path().canonicalize())
            && from == to
        {
            return Err(Failure::new("-o: these are the functions that --load reads").hint("name another folder"));
        }
        self.pairs.check(contrastive)?;
        self.learn.check(method)
    }

    /// Settings of another method than the one that is used.
    fn check_settings(&self) -> Result<(), Failure> {
        let settings = [
            ("--landmarks", self.landmarks.is_some(), MethodName::Nystrom),
            ("--n-landmarks", self.n_landmarks.is_some(), MethodName::Nystrom),
            ("--n-features", self.n_features.is_some(), MethodName::Rff),
            ("--orthogonal", self.orthogonal, MethodName::Rff),
        ];
        match settings.iter().find(|(_, given, method)| *given && self.method != Some(*method)) {
            Some((flag, _, method)) => Err(Failure::new(format!("{flag} is for --method {}", method.name()))),
            None => Ok(()),
        }
    }
}
