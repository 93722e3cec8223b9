//! The kernels of networks by name, with their settings. The parser and the help text both read this table.

use crate::classic;

/// A kernel of a network.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    /// An example for help.
    written: &'static str,
    about: &'static str,
    /// Names of settings, from [`SETTINGS`].
    pub(super) settings: &'static [&'static str],
    /// The meaning of a positional value, if one is allowed.
    pub(super) positional: Option<&'static str>,
}

const TANGENT: &[&str] = &["node", "outputs", "combine", "params", "sketch", "total", "seed"];
const LIMIT: &[&str] = &["initialisation", "weight-std", "bias-std", "parametrisation"];
const MEAN: &[&str] = &["initialisation", "weight-std", "bias-std", "parametrisation", "networks", "seed"];

const fn entry(
    name: &'static str,
    written: &'static str,
    about: &'static str,
    settings: &'static [&'static str],
    positional: Option<&'static str>,
) -> Entry {
    Entry { name, written, about, settings, positional }
}

pub(super) static KERNELS: [Entry; 12] = [
    entry("trace", "trace", "empirical NTK, summed over the outputs", TANGENT, None),
    entry("pseudo", "pseudo", "NTK of the sum of the outputs, divided by their number", TANGENT, None),
    entry("full", "full", "NTK of all pairs of outputs: an N × C × M × C array", TANGENT, None),
    entry("logit", "logit(3)", "NTK of one output, counted from 0", TANGENT, Some("output")),
    entry(
        "directions",
        "directions(1000)",
        "NTK from derivatives along random directions",
        &["of", "node", "outputs", "combine", "params", "signs", "seed"],
        Some("count"),
    ),
    entry("ck", "ck", "conjugate kernel: features of the last hidden layer", &["node", "bias"], None),
    entry("embedding", "embedding(nodes=[\"relu1\"])", "features at chosen nodes", &["nodes"], None),
    entry("nngp", "nngp", "NNGP of the architecture at infinite width", LIMIT, None),
    entry("ntk-limit", "ntk-limit(weight-std=1.5)", "NTK of the architecture at infinite width", LIMIT, None),
    entry("nngp-mc", "nngp-mc(networks=1000)", "mean NNGP of random networks", MEAN, None),
    entry("ntk-mc", "ntk-mc(networks=1000)", "mean NTK of random networks", MEAN, None),
    entry("normalised", "normalised(trace)", "κ(x,x')/√(κ(x,x)·κ(x',x')), of any kernel", &[], Some("kernel")),
];

/// The settings and their meaning.
const SETTINGS: [(&str, &str); 15] = [
    ("node=\"NAME\"", "the output or node whose kernel it is; the logits of the first output if not given"),
    ("outputs=[0, 3]", "these components of the output"),
    ("combine=[1, -1]", "this combination of the components, here f₀ − f₁"),
    ("params=\"layer3.*\"", "only parameters or layers of these names; a text or a list, * and ? are wild"),
    ("sketch=sjlt:4096", "random features: sjlt:K, srht:K, khatri-rao:K, kronecker:K, rademacher:K, gaussian:K"),
    ("total=true", "K features in all, not K per output"),
    ("of=pseudo", "the kernel that directions approximate: trace (default), pseudo, full or logit:I"),
    ("signs=true", "directions of random signs instead of normal numbers"),
    ("bias=false", "leave out the feature of the last layer's bias"),
    ("nodes=[\"a\", \"b\"]", "the nodes of an embedding; `mercer info` lists them"),
    ("networks=100", "random networks to average over"),
    ("initialisation=he", "standard (PyTorch's default), he, lecun, normal or ntk; that of --arch if not given"),
    ("weight-std=1.5, bias-std=0.1", "weights of variance σ²/fan-in, biases of variance σ², in every layer"),
    ("parametrisation=ntk", "as-written, ntk or standard; ntk with weight-std, else as-written"),
    ("seed=7", "of everything random; --seed if not given"),
];

/// Whether this is the name of a network kernel.
pub(crate) fn needs_network(name: &str) -> bool {
    name != "normalised" && find(name).is_some()
}

pub(super) fn find(name: &str) -> Option<&'static Entry> {
    KERNELS.iter().find(|entry| entry.name == name)
}

/// All names, of network kernels and classic kernels.
pub(super) fn names() -> Vec<&'static str> {
    KERNELS.iter().map(|entry| entry.name).chain(classic::Formula::names()).collect()
}

/// The language in full, for help: kernels of networks, their settings, classic kernels.
pub fn help() -> String {
    let line = |(left, right): (&str, &str)| format!("  {left:<30} {right}\n");
    let kernels: String = KERNELS.iter().map(|entry| line((entry.written, entry.about))).collect();
    let settings: String = SETTINGS.iter().copied().map(line).collect();
    format!(
        "Kernels of a network (--net or --arch):\n{kernels}\nTheir settings, in parentheses and separated by commas:\n\
         {settings}\nFunctions of the data alone, with the defaults of their parameters:\n{}\nKernels add and multiply, \
         also with positive numbers: '0.5*ck + 0.1*rbf(lengthscale=2)'.\n",
        classic::help()
    )
}
