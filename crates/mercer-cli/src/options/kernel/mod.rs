//! Which kernel: of a network file, of an architecture, or of none.

mod kind;
mod random;
mod source;

use super::ParameterOptions;
use crate::console::Console;
use crate::failure::Failure;
use crate::format::{bytes, rounded_up};
pub(crate) use kind::KernelKind;
use mercer::kernel::infinite::Of;
use mercer::kernel::sketch::{Spec, parse};
use mercer::kernel::{KernelError, Kind, Recipe, Selection};
use random::RandomOptions;
pub(crate) use source::{Source, SourceOptions};
use std::path::Path;

/// The options of a kernel, for all commands that need one.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelOptions {
    #[command(flatten)]
    source: SourceOptions,

    /// Which kernel: full, trace, pseudo, logit:I, ck, embedding, nngp, ntk-limit, nngp-mc or ntk-mc
    #[arg(long, value_name = "KIND")]
    kind: Option<KernelKind>,

    /// The output tensor, or any node, whose kernel it is [default: the first output, or its logits before a final softmax or sigmoid]
    #[arg(long, value_name = "NAME")]
    output: Option<String>,

    /// Only these components of the output, as in 0,3,7
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    components: Option<Vec<usize>>,

    /// The kernel of this combination of the outputs, as in 1,-1
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', allow_hyphen_values = true)]
    combine: Option<Vec<f64>>,

    /// The nodes of an embedding kernel, as in /layer1/Relu,/layer2/Relu
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    at: Vec<String>,

    /// Leave the last layer's bias out of the conjugate kernel
    #[arg(long)]
    without_bias: bool,

    /// Divide by √(κ(x,x)·κ(x',x')), so that the diagonal is 1
    #[arg(long)]
    normalise: bool,

    /// Only parameters or layers of this name (`*` and `?` are wild; repeatable)
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    params: Vec<String>,

    /// Approximate by random features: sjlt:K, khatri-rao:K, kronecker:K, srht:K, rademacher:K or gaussian:K
    #[arg(long, value_name = "METHOD:K")]
    sketch: Option<String>,

    /// K features in all, instead of K per output
    #[arg(long, requires = "sketch")]
    sketch_total: bool,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    random: RandomOptions,
}

impl KernelOptions {
    /// Whether a kernel is named at all.
    pub(crate) fn is_given(&self) -> bool {
        self.source.is_given()
    }

    /// The file or the formula, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.source.path()
    }

    /// The network's file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.source.file()
    }

    /// The kind as the user wrote it, or the formula.
    pub(crate) fn name(&self) -> String {
        self.source.formula().map_or_else(|| self.kind().to_string(), str::to_owned)
    }

    /// Which kernel; without a network it is the formula's.
    pub(crate) fn kind(&self) -> KernelKind {
        self.kind.unwrap_or(KernelKind::Classic)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn sketch(&self) -> Option<&str> {
        self.sketch.as_deref()
    }

    pub(crate) fn normalised(&self) -> bool {
        self.normalise
    }

    /// Random networks that the kernel is a mean over.
    pub(crate) fn networks(&self) -> Option<usize> {
        matches!(self.kind, Some(KernelKind::MonteCarlo(_))).then(|| self.random.samples())
    }

    /// Opens the network.
    pub(crate) fn open(&self, parameters: &ParameterOptions) -> Result<Source, Failure> {
        self.source.open(parameters, self.seed)
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
    pub(crate) fn recipe(&self, source: &Source, by_layer: bool) -> Result<Recipe, Failure> {
        let rule = self.random.rule(source.initialisation());
        let recipe = match (self.kind(), &self.sketch) {
            (KernelKind::Tangent(kind), None) => Recipe::Tangent { kind, selection: self.selection(), by_layer },
            (KernelKind::Tangent(kind), Some(text)) => Recipe::Sketch(self.spec(kind, text)?),
            (KernelKind::Conjugate, _) => Recipe::Conjugate { output: self.output.clone(), bias: !self.without_bias },
            (KernelKind::Embedding, _) => Recipe::Embedding(self.at.clone()),
            (KernelKind::Classic, _) => match source {
                Source::Formula(expression) => Recipe::Classic(expression.to_string()),
                _ => return Err(Failure::new("which kernel of the network?").hint("--kind trace")),
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

    /// Says so where the kernel is that of the logits behind the network's output, and what is to know of the parameters that it
    /// depends on.
    pub(crate) fn tell(&self, recipe: &Recipe, source: &Source, shapes: &[Vec<usize>], console: &Console) {
        if let Some(logits) = recipe.logits(source.network(), shapes) {
            let flag = matches!(self.kind(), KernelKind::Tangent(_)).then_some("--output");
            console.note(&format!("note: {}", logits.note("the kernel", flag)));
        }
        console.remark(source.network().filter(|_| recipe.depends_on_parameters()));
    }

    fn spec(&self, kind: Kind, text: &str) -> Result<Spec, Failure> {
        let (method, k) = parse(text).map_err(|error| Failure::new(format!("--sketch {text}: {error}")))?;
        let spec = Spec::new(method, k, kind);
        Ok(Spec { total: self.sketch_total, seed: self.seed, selection: self.selection(), ..spec })
    }

    /// Flags that mean nothing together are refused instead of ignored.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let kind = self.kind();
        self.check_formula()?;
        if self.source.file().is_some() && self.kind.is_none() {
            return Err(Failure::new("--kind is missing: which kernel of the network?")
                .hint("--kind trace, pseudo, ck, nngp, …; see --help"));
        }
        self.random.check(kind)?;
        let tangent = matches!(kind, KernelKind::Tangent(_));
        let chosen = [
            ("--params", !self.params.is_empty()),
            ("--components", self.components.is_some()),
            ("--combine", self.combine.is_some()),
            ("--sketch", self.sketch.is_some()),
        ];
        if let Some((flag, _)) = chosen.iter().find(|(_, given)| *given && !tangent) {
            return Err(Failure::new(format!("{flag} is for tangent kernels, not for --kind {kind}"))
                .hint("--kind trace, pseudo, full or logit:I"));
        }
        if self.output.is_some() && kind.draws_weights() {
            return Err(Failure::new(format!("--output: --kind {kind} is of the network's first output")));
        }
        if kind == KernelKind::Embedding && self.at.is_empty() {
            return Err(Failure::new("--kind embedding: which nodes?").hint("--at NODE,NODE; `mercer info` lists them"));
        }
        if kind != KernelKind::Embedding && !self.at.is_empty() {
            return Err(Failure::new(format!("--at is for --kind embedding, not for {kind}"))
                .hint("--output NAME gives the kernel of another value"));
        }
        if self.without_bias && kind != KernelKind::Conjugate {
            return Err(Failure::new("--without-bias is for --kind ck"));
        }
        if kind == KernelKind::Tangent(Kind::Full) && self.sketch.is_some() {
            return Err(Failure::new("--sketch: a full kernel has no sketch").hint("--kind trace or pseudo"));
        }
        Ok(())
    }

    /// A formula is a function of the data: what speaks of networks is refused.
    fn check_formula(&self) -> Result<(), Failure> {
        let flags = [
            ("--kind", self.kind.is_some()),
            ("--output", self.output.is_some()),
            ("--components", self.components.is_some()),
            ("--combine", self.combine.is_some()),
            ("--at", !self.at.is_empty()),
            ("--without-bias", self.without_bias),
            ("--params", !self.params.is_empty()),
            ("--sketch", self.sketch.is_some()),
        ];
        match flags.iter().find(|(_, given)| *given && self.source.formula().is_some()) {
            Some((flag, _)) => {
                Err(Failure::new(format!("--kernel is a function of the data; {flag} speaks of a network"))
                    .hint(format!("leave {flag} out, or give --net MODEL.onnx --kind KIND instead of --kernel")))
            }
            None => Ok(()),
        }
    }

    /// What went wrong with the kernel, in the words of the command line.
    pub(crate) fn failure(&self, error: KernelError) -> Failure {
        match error {
            KernelError::Network(error) => Failure::of_network(self.source.path(), *error),
            KernelError::Data(error) => (*error).into(),
            KernelError::Memory { allowed, needed } => {
                let text = format!("--memory {} is too little for one tile", bytes(allowed));
                Failure::new(text).hint(format!("--memory {}, the smallest that would do", rounded_up(needed)))
            }
            KernelError::Disk { place, needed, free } => Failure::new(format!(
                "the result takes {}, but only {} are free in {place}",
                bytes(needed as usize),
                bytes(free as usize)
            ))
            .hint("-o on another disk; --features writes the features of a kernel that has some instead of a number per pair"),
            KernelError::NotFinite { .. } | KernelError::Overflow { .. } => {
                Failure::new(format!("{}: {error}", self.source.path().display()))
                    .hint("the numbers overflow: --precision f64, or --scale for data that are too large")
            }
            KernelError::NoLimit { node, reason } => {
                let mean = if self.kind == Some(KernelKind::Limit(Of::Nngp)) { "nngp-mc" } else { "ntk-mc" };
                let path = self.source.path().display();
                Failure::new(format!("{path}: node {node} has no known limit at infinite width: {reason}"))
                    .hint(format!("--kind {mean} --samples 1000 takes the mean over random networks instead"))
            }
            KernelError::Store(error) => (*error).into(),
            KernelError::Cancelled => Failure::interrupted("interrupted"),
            other => Failure::new(other.to_string()),
        }
    }
}
