//! Which kernel: of a network file, of an architecture, or of none.

mod random;

use super::ParameterOptions;
use mercer::spec::{KernelKind, KernelSpec, SourceSpec};
use random::RandomOptions;
use std::path::PathBuf;

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

/// What the kernel is of.
#[derive(Clone, Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct SourceOptions {
    /// The network
    #[arg(long, value_name = "MODEL.onnx")]
    net: Option<PathBuf>,

    /// A network described in TOML, with random weights of --seed (see `mercer train --help`)
    #[arg(long, value_name = "FILE.toml")]
    arch: Option<PathBuf>,

    /// A classic kernel of the data alone, as in 'rbf(lengthscale=1.5) + 0.1*linear()' (see below)
    #[arg(long, value_name = "FORMULA")]
    kernel: Option<String>,
}

impl KernelOptions {
    /// Whether there is a kernel.
    pub(crate) fn is_given(&self) -> bool {
        let SourceOptions { net, arch, kernel } = &self.source;
        net.is_some() || arch.is_some() || kernel.is_some()
    }

    /// As data.
    pub(crate) fn spec(&self, parameters: &ParameterOptions) -> KernelSpec {
        let SourceOptions { net, arch, kernel } = self.source.clone();
        KernelSpec {
            source: SourceSpec { net, arch, kernel },
            parameters: parameters.spec(),
            kind: self.kind,
            output: self.output.clone(),
            components: self.components.clone(),
            combine: self.combine.clone(),
            at: self.at.clone(),
            without_bias: self.without_bias,
            normalise: self.normalise,
            params: self.params.clone(),
            sketch: self.sketch.clone(),
            sketch_total: self.sketch_total,
            seed: self.seed,
            random: self.random.spec(),
        }
    }
}
