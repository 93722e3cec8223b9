//! What a run says about itself.

use crate::format::{count, duration, table};
use mercer::spectral::retrieval::Retrieval;
use mercer::spectral::{Choice, Measured, Repairs};
use serde::Serialize;

/// What `--json` shows and `result.json` keeps.
#[derive(Debug, Default, Serialize)]
pub(super) struct EigenReport {
    pub(super) kind: &'static str,
    /// The files that were written with it.
    pub(super) files: Vec<String>,
    pub(super) kernel: Option<String>,
    pub(super) method: String,
    pub(super) precision: String,
    pub(super) samples: usize,
    pub(super) evaluated: Option<usize>,
    pub(super) wanted: usize,
    /// μ, descending.
    pub(super) values: Vec<f64>,
    pub(super) repairs: Repairs,
    /// `Σ_n κ(x_n, x_n) / N`, which all eigenvalues sum to.
    pub(super) mean_diagonal: Option<f64>,
    /// Of Nyström's approximation with all its components.
    pub(super) trace_residual: Option<f64>,
    pub(super) landmarks: Option<usize>,
    /// With `--truth`.
    pub(super) truth: Option<Compared>,
    /// Before the Rayleigh–Ritz finish of functions that were learnt.
    pub(super) before: Option<Before>,
    /// Whether the matrix of a tangent kernel was made, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) choice: Option<Choice>,
    /// With labels of `--data` and of `--eval`.
    pub(super) codes: Option<Codes>,
    /// Of finding the functions.
    pub(super) seconds: f64,
    pub(super) output: String,
}

/// The exact decomposition.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    pub(super) values: Vec<f64>,
    #[serde(flatten)]
    pub(super) measured: Measured,
}

/// How much the first numbers of a code tell.
#[derive(Debug, Serialize)]
pub(super) struct Codes {
    /// The items that precision looks at.
    pub(super) nearest: usize,
    pub(super) lengths: Vec<Score>,
}

/// Codes of one length.
#[derive(Debug, Serialize)]
pub(super) struct Score {
    #[serde(flatten)]
    pub(super) found: Retrieval,
    /// Of a linear classifier.
    pub(super) accuracy: f64,
}

impl Codes {
    fn text(&self) -> String {
        let head = ["code length", "accuracy", &format!("precision at {}", self.nearest), "mAP"].map(str::to_owned);
        let percent = |share: f64| format!("{:.2} %", 100.0 * share);
        let row = |score: &Score| {
            let Retrieval { length, precision, mean_average_precision } = score.found;
            vec![length.to_string(), percent(score.accuracy), percent(precision), percent(mean_average_precision)]
        };
        let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(self.lengths.iter().map(row)).collect();
        table(&rows, &[0, 1, 2, 3])
    }
}

/// What networks learnt, as it was.
#[derive(Debug, Serialize)]
pub(super) struct Before {
    pub(super) values: Vec<f64>,
    pub(super) comparison: Option<Measured>,
}

impl EigenReport {
    pub(super) fn repairs(&self) -> Vec<String> {
        self.repairs.sentences()
    }

    pub(super) fn text(&self) -> String {
        let mut head = vec!["".to_owned(), "μ".to_owned()];
        // Where some eigenvalues are negative, the others sum to more than the diagonal.
        let diagonal = self.mean_diagonal.filter(|_| self.repairs.negative == 0);
        if diagonal.is_some() {
            head.push("sum".to_owned());
        }
        let number = |numbers: &[f64], j: usize| match numbers.get(j) {
            // Rounding may make a difference of nothing negative.
            Some(number) if number.abs() < 5e-5 => "0.0000".to_owned(),
            Some(number) => format!("{number:.4}"),
            None => "–".to_owned(),
        };
        if let Some(Compared { measured, .. }) = &self.truth {
            head.extend(["true μ", "|cos|", "angle"].map(str::to_owned));
            if measured.held_out.is_some() {
                head.extend(["|cos| held out", "gap"].map(str::to_owned));
            }
        }
        if self.before.is_some() {
            head.push("μ before".to_owned());
            if self.truth.is_some() {
                head.push("|cos| before".to_owned());
                if self.truth.as_ref().is_some_and(|truth| truth.measured.held_out.is_some()) {
                    head.push("held out".to_owned());
                }
            }
        }
        let mut rows = vec![head];
        let mut sum = 0.0;
        for (j, value) in self.values.iter().enumerate() {
            sum += value;
            let mut row = vec![(j + 1).to_string(), format!("{value:.6e}")];
            if let Some(diagonal) = diagonal {
                row.push(format!("{:.2} %", 100.0 * sum / diagonal));
            }
            if let Some(Compared { values, measured: Measured { data, held_out } }) = &self.truth {
                row.push(values.get(j).map_or("–".to_owned(), |value| format!("{value:.6e}")));
                row.push(number(&data.cosines, j));
                row.push(data.subspace_angles.get(j).map_or("–".to_owned(), |angle| format!("{angle:.2}°")));
                if let Some(held_out) = held_out {
                    row.extend([number(&held_out.cosines, j), number(&held_out.gaps, j)]);
                }
            }
            if let Some(before) = &self.before {
                row.push(before.values.get(j).map_or("–".to_owned(), |value| format!("{value:.6e}")));
                if let Some(Measured { data, held_out }) = before.comparison.as_ref().filter(|_| self.truth.is_some()) {
                    row.push(number(&data.cosines, j));
                    row.extend(held_out.iter().map(|held_out| number(&held_out.cosines, j)));
                }
            }
            rows.push(row);
        }
        let mut text = table(&rows, &[]);
        if let Some(residual) = self.trace_residual {
            let landmarks = count(self.landmarks.unwrap_or(0), "landmark");
            text += &format!("{landmarks} leave {residual:.2e} of the kernel's trace unexplained\n");
        }
        text += &format!(
            "{} of {} by {}, {}, in {}, in {}\n",
            count(self.values.len(), "function"),
            count(self.samples, "sample"),
            self.method,
            self.precision,
            duration(self.seconds),
            self.output
        );
        if let Some(evaluated) = self.evaluated {
            text += &format!("evaluated on {}: psi.npy\n", count(evaluated, "sample"));
        }
        if let Some(codes) = &self.codes {
            text += "\n";
            text += &codes.text();
        }
        text
    }
}
