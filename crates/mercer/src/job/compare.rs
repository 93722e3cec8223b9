//! Compares Gram matrices of the same samples in pairs.
//!
//! ```
//! let job = mercer::job::CompareJob { grams: vec!["a.npy".to_owned(), "b.zarr".to_owned()] };
//! assert_eq!(serde_json::to_string(&job)?, r#"{"grams":["a.npy","b.zarr"]}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use super::{Destination, Job, Opened, Outcome, Stopwatch};
use crate::Error;
use crate::spec::Opening;
use crate::text::{bytes, suggested};
use mercer_data::Source;
use mercer_kernel::gram::KeptGram;
use mercer_lens::{Extent, Likeness, extent, likeness};
use mercer_run::{Context, resident_memory};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// The peak number of matrices in memory: the two being compared, and the workspace of the comparison or decomposition.
const COPIES: usize = 9;

/// The Gram matrices to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompareJob {
    /// Files or stores, all of the same samples in the same order.
    pub grams: Vec<String>,
}

/// The cost of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct ComparePlan {
    /// Rows of the matrices.
    pub n_rows: usize,
    /// Peak memory.
    pub bytes: usize,
}

/// The similarity of the matrices.
#[derive(Clone, Debug, Serialize)]
pub struct CompareFindings {
    /// Findings for each matrix.
    pub matrices: Vec<MatrixFindings>,
    /// Findings for each pair.
    pub pairs: Vec<PairFindings>,
}

/// A matrix by itself.
#[derive(Clone, Debug, Serialize)]
pub struct MatrixFindings {
    /// The file or store.
    pub name: String,
    /// Its extreme eigenvalues.
    #[serde(flatten)]
    pub extent: Extent,
}

/// Two matrices.
#[derive(Clone, Debug, Serialize)]
pub struct PairFindings {
    /// The first.
    pub a: String,
    /// The second.
    pub b: String,
    /// Their similarity.
    #[serde(flatten)]
    pub likeness: Likeness,
}

/// A comparison with everything opened.
#[derive(Debug)]
pub struct OpenedCompare {
    matrices: Vec<KeptGram>,
    plan: ComparePlan,
    watch: Stopwatch,
}

impl Job for CompareJob {
    const NAME: &'static str = "compare";

    type Opened = OpenedCompare;

    fn open(&self, _: &Destination, opening: Opening<'_>) -> Result<OpenedCompare, Error> {
        let watch = Stopwatch::start();
        if self.grams.len() < 2 {
            return Err(Error::new("there is nothing to compare with").hint("name two Gram matrices or more"));
        }
        let open = |name: &String| Ok(KeptGram::open(&name.parse::<Source>()?)?);
        let matrices = self.grams.iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let rows = matrices.iter().map(|kept| Ok(kept.square()?.0)).collect::<Result<Vec<_>, Error>>()?;
        let n_rows = rows[0];
        if let Some(other) = rows.iter().position(|&count| count != n_rows) {
            let text = format!("{} has {} rows, but {} has {n_rows}", self.grams[other], rows[other], self.grams[0]);
            return Err(
                Error::with_code("sample-count", text).hint("all must be of the same samples, in the same order")
            );
        }
        let held = n_rows.saturating_mul(n_rows).saturating_mul(COPIES * size_of::<f64>());
        let needed = held.saturating_add(resident_memory());
        if needed > opening.context.memory() {
            let allowed = bytes(opening.context.memory());
            let text = format!("‹memory› {allowed} is too little: {} are needed", bytes(needed));
            return Err(Error::with_code("memory", text)
                .hint(format!("‹memory› {}, the smallest that would do", suggested(needed))));
        }
        Ok(OpenedCompare { matrices, plan: ComparePlan { n_rows, bytes: needed }, watch })
    }
}

impl Opened for OpenedCompare {
    type Plan = ComparePlan;
    type Findings = CompareFindings;

    fn plan(&self) -> &ComparePlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<CompareFindings>, Error> {
        let n_rows = self.plan.n_rows;
        let read = |kept: &KeptGram| -> Result<Array2<f64>, Error> {
            context.check()?;
            let _phase = context.phase("reading");
            let array = kept.read::<f64>(context)?;
            let matrix = array.as_standard_layout().into_owned().into_shape_with_order((n_rows, n_rows));
            matrix.map_err(|error| Error::new(format!("{}: {error}", kept.place())))
        };
        let (mut matrices, mut pairs) = (Vec::new(), Vec::new());
        let total = self.matrices.len();
        for (at, first) in self.matrices.iter().enumerate() {
            let (a, name) = (read(first)?, first.place().to_owned());
            let about = |error| Error::from(error).with_place(&name);
            for second in &self.matrices[at + 1..] {
                let b = read(second)?;
                let _phase = context.phase("comparing");
                let likeness = likeness(a.view(), b.view()).map_err(about)?;
                pairs.push(PairFindings { a: name.clone(), b: second.place().to_owned(), likeness });
            }
            let _phase = context.phase("decomposing");
            matrices.push(MatrixFindings { extent: extent(a.view()).map_err(about)?, name });
            context.report(at + 1, total, "matrices");
        }
        Ok(self.watch.outcome(CompareFindings { matrices, pairs }, Vec::new(), context))
    }
}
