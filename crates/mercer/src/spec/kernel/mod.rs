//! Which kernel: of a network file, of an architecture, or of none.

mod kind;
mod random;
mod source;

use super::ParameterSpec;
use crate::Error;
pub use kind::KernelKind;
use mercer_kernel::infinite::Of;
use mercer_kernel::sketch::{Spec, parse};
use mercer_kernel::{Built, KernelError, Kind, Real, Recipe, SavedKernel, Selection};
use mercer_run::Context;
pub use random::RandomSpec;
use serde::{Deserialize, Serialize};
pub use source::{Source, SourceSpec};
use std::path::Path;

/// A kernel, for all jobs that need one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelSpec {
    /// What it is of.
    pub source: SourceSpec,
    /// Which tensors of the network are parameters.
    #[serde(skip_serializing_if = "is_default")]
    pub parameters: ParameterSpec,
    /// Which kernel of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<KernelKind>,
    /// The output, or any node, whose kernel it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Only these components of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<Vec<usize>>,
    /// The kernel of this combination of the outputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combine: Option<Vec<f64>>,
    /// The nodes of an embedding kernel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// Leave the last layer's bias out of the conjugate kernel.
    #[serde(skip_serializing_if = "is_default")]
    pub without_bias: bool,
    /// Divide by √(κ(x,x)·κ(x',x')), so that the diagonal is 1.
    #[serde(skip_serializing_if = "is_default")]
    pub normalise: bool,
    /// Only parameters or layers of these names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<String>,
    /// Approximate by random features, as in `sjlt:4096`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sketch: Option<String>,
    /// As many features in all, instead of per output.
    #[serde(skip_serializing_if = "is_default")]
    pub sketch_total: bool,
    /// Seed of everything random.
    #[serde(with = "crate::job::seed")]
    pub seed: u64,
    /// How weights are drawn.
    #[serde(skip_serializing_if = "RandomSpec::is_empty")]
    pub random: RandomSpec,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl KernelSpec {
    /// Whether a kernel is named at all.
    pub fn is_given(&self) -> bool {
        self.source.is_given()
    }

    /// The file or the formula, for messages.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The network's file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.source.file()
    }

    /// The kind as the user wrote it, or the formula.
    pub fn name(&self) -> String {
        self.source.formula().map_or_else(|| self.kind().to_string(), str::to_owned)
    }

    /// Which kernel; without a network it is the formula's.
    pub fn kind(&self) -> KernelKind {
        self.kind.unwrap_or(KernelKind::Classic)
    }

    /// Random networks that the kernel is a mean over.
    pub fn networks(&self) -> Option<usize> {
        matches!(self.kind, Some(KernelKind::MonteCarlo(_))).then(|| self.random.samples())
    }

    /// Opens the network.
    pub fn open(&self) -> Result<Source, Error> {
        self.source.open(&self.parameters, self.seed)
    }

    /// Which outputs and parameters.
    fn selection(&self) -> Selection {
        Selection {
            output: self.output.clone(),
            components: self.components.clone(),
            combine: self.combine.clone(),
            parameters: self.params.clone(),
        }
    }

    /// What the flags say, once they have been [checked](Self::check).
    pub fn recipe(&self, source: &Source, by_layer: bool) -> Result<Recipe, Error> {
        let rule = self.random.rule(source.initialisation());
        let recipe = match (self.kind(), &self.sketch) {
            (KernelKind::Tangent(kind), None) => Recipe::Tangent { kind, selection: self.selection(), by_layer },
            (KernelKind::Tangent(kind), Some(text)) => Recipe::Sketch(self.spec(kind, text)?),
            (KernelKind::Conjugate, _) => Recipe::Conjugate { output: self.output.clone(), bias: !self.without_bias },
            (KernelKind::Embedding, _) => Recipe::Embedding(self.at.clone()),
            (KernelKind::Classic, _) => match source {
                Source::Formula(expression) => Recipe::Classic(expression.to_string()),
                _ => return Err(Error::new("which kernel of the network?").hint("‹kind› trace")),
            },
            (KernelKind::Limit(of), _) => Recipe::Limit { of, rule },
            (KernelKind::MonteCarlo(of), _) => {
                let networks = self.random.samples();
                let errors = networks > 1 && !self.normalise;
                Recipe::MonteCarlo { of, rule, networks, seed: self.seed, errors }
            }
        };
        Ok(if self.normalise { Recipe::Normalised(Box::new(recipe)) } else { recipe })
    }

    /// The kernel as it is saved within a result: nothing outside of it is needed to build it again.
    pub fn saved<T: Real>(&self, recipe: &Recipe, source: &Source, built: &Built<T>) -> Result<SavedKernel, Error> {
        let network = source.saved(self.path(), &self.parameters)?;
        let saved = SavedKernel::new(recipe.clone(), network);
        // A network that is written anew computes the same from another graph; its digest tells all that there is to tell.
        let is_file = self.source.arch.is_none() && self.parameters.weights.is_none();
        Ok(if is_file { saved.with_identity(built.kernel.identity()) } else { saved })
    }

    /// Says so where the kernel is that of the logits behind the network's output, and what is to know of the parameters that it
    /// depends on.
    pub fn tell(&self, recipe: &Recipe, source: &Source, shapes: &[Vec<usize>], context: &Context) {
        if let Some(logits) = recipe.logits(source.network(), shapes) {
            let flag = matches!(self.kind(), KernelKind::Tangent(_)).then_some("‹output›");
            context.note(&logits.note("the kernel", flag));
        }
        crate::job::remark(source.network().filter(|_| recipe.depends_on_parameters()), context);
    }

    fn spec(&self, kind: Kind, text: &str) -> Result<Spec, Error> {
        let (method, k) = parse(text).map_err(|error| Error::new(format!("‹sketch› {text}: {error}")))?;
        let spec = Spec::new(method, k, kind);
        Ok(Spec { total: self.sketch_total, seed: self.seed, selection: self.selection(), ..spec })
    }

    /// Flags that mean nothing together are refused instead of ignored.
    pub fn check(&self) -> Result<(), Error> {
        let kind = self.kind();
        self.check_formula()?;
        if self.source.file().is_some() && self.kind.is_none() {
            return Err(Error::new("‹kind› is missing: which kernel of the network?")
                .hint("‹kind› trace, pseudo, ck, nngp, …; see --help"));
        }
        self.random.check(kind)?;
        let tangent = matches!(kind, KernelKind::Tangent(_));
        let chosen = [
            ("‹params›", !self.params.is_empty()),
            ("‹components›", self.components.is_some()),
            ("‹combine›", self.combine.is_some()),
            ("‹sketch›", self.sketch.is_some()),
        ];
        if let Some((flag, _)) = chosen.iter().find(|(_, given)| *given && !tangent) {
            return Err(Error::new(format!("{flag} is for tangent kernels, not for ‹kind› {kind}"))
                .hint("‹kind› trace, pseudo, full or logit:I"));
        }
        if self.output.is_some() && kind.draws_weights() {
            return Err(Error::new(format!("‹output›: ‹kind› {kind} is of the network's first output")));
        }
        if kind == KernelKind::Embedding && self.at.is_empty() {
            return Err(Error::new("‹kind› embedding: which nodes?").hint("‹at› NODE,NODE; `mercer info` lists them"));
        }
        if kind != KernelKind::Embedding && !self.at.is_empty() {
            return Err(Error::new(format!("‹at› is for ‹kind› embedding, not for {kind}"))
                .hint("‹output› NAME gives the kernel of another value"));
        }
        if self.without_bias && kind != KernelKind::Conjugate {
            return Err(Error::new("‹without-bias› is for ‹kind› ck"));
        }
        if kind == KernelKind::Tangent(Kind::Full) && self.sketch.is_some() {
            return Err(Error::new("‹sketch›: a full kernel has no sketch").hint("‹kind› trace or pseudo"));
        }
        Ok(())
    }

    /// A formula is a function of the data: what speaks of networks is refused.
    fn check_formula(&self) -> Result<(), Error> {
        let flags = [
            ("‹kind›", self.kind.is_some()),
            ("‹output›", self.output.is_some()),
            ("‹components›", self.components.is_some()),
            ("‹combine›", self.combine.is_some()),
            ("‹at›", !self.at.is_empty()),
            ("‹without-bias›", self.without_bias),
            ("‹params›", !self.params.is_empty()),
            ("‹sketch›", self.sketch.is_some()),
        ];
        match flags.iter().find(|(_, given)| *given && self.source.formula().is_some()) {
            Some((flag, _)) => {
                Err(Error::new(format!("‹kernel› is a function of the data; {flag} speaks of a network"))
                    .hint(format!("leave {flag} out, or give ‹net› MODEL.onnx ‹kind› KIND instead of ‹kernel›")))
            }
            None => Ok(()),
        }
    }

    /// What went wrong with the kernel, and of which file.
    pub fn failure(&self, error: KernelError) -> Error {
        match error {
            KernelError::Network(error) => Error::of_network(self.path(), *error),
            KernelError::NotFinite { .. } | KernelError::Overflow { .. } => {
                let text = format!("{}: {error}", self.path().display());
                Error::from(error).with_message(text)
            }
            KernelError::NoLimit { ref node, ref reason } => {
                let mean = if self.kind == Some(KernelKind::Limit(Of::Nngp)) { "nngp-mc" } else { "ntk-mc" };
                let path = self.path().display();
                let text = format!("{path}: node {node} has no known limit at infinite width: {reason}");
                Error::from(error)
                    .with_message(text)
                    .hint(format!("‹kind› {mean} ‹samples› 1000 takes the mean over random networks instead"))
            }
            other => other.into(),
        }
    }
}
