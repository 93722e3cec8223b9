//! How a machine chooses among several values of a setting.

/// Help of `--penalty`, which is one flag of several machines.
pub(crate) const PENALTY: &str =
    "Strength of the penalty; of several, the best by cross-validation (ridge: leave-one-out)";

/// Help of `--neighbours`, likewise.
pub(crate) const NEIGHBOURS: &str = "How many neighbours vote";

/// Help of `--layer`, likewise.
pub(crate) const LAYER: &str = "Layers to look at (repeatable; may contain * and ?) [default: all blocks or layers]";

/// Help of `--permutations`, likewise.
pub(crate) const PERMUTATIONS: &str = "Permutations for p-values";

/// How one of several values is chosen.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct FoldOptions {
    /// Folds of the cross-validation that chooses among several values
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) folds: usize,
}
