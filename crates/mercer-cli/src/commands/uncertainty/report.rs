//! What the command has to say, also in `result.json`.

use super::UncertaintyArguments;
use super::method::Method;
use crate::format::{bytes, count, duration, grouped, table};
use crate::options::{Precision, Samples};
use mercer::learn::laplace::{ClassScores, Detection, Needs, RegressionScores, worse};
use serde::Serialize;
use std::fmt::Write;

/// What kind of result it is.
pub(super) const KIND: &str = "uncertainty";

/// The result of the command.
#[derive(Debug, Serialize)]
pub(super) struct UncertaintyReport {
    kind: &'static str,
    /// The files that were written with it.
    pub(super) files: Vec<String>,
    network: String,
    method: Method,
    precision: Precision,
    n_train: usize,
    /// Of the whole training set, where only a part was given.
    train_size: Option<usize>,
    n_test: usize,
    needs: Needs,
    prior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prior_precision: Option<f64>,
    /// The standard deviation of the observations of a regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) noise: Option<f64>,
    noise_choice: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) log_evidence: Option<f64>,
    /// How class probabilities are computed: `probit`, or the number of draws.
    predictive: String,
    pub(super) map: Scores,
    pub(super) laplace: Scores,
    /// Whether the posterior predicts the test labels worse than the network alone.
    worse_than_network: Option<bool>,
    pub(super) notes: Vec<String>,
    pub(super) repairs: Vec<String>,
    /// Samples whose residual had a negative part, which was cut off.
    pub(super) clipped: usize,
    pub(super) seconds: f64,
    output: Option<String>,
}

/// How good the predictions are.
#[derive(Debug, Default, Serialize)]
pub(super) struct Scores {
    #[serde(flatten)]
    pub(super) classes: Option<ClassScores>,
    #[serde(flatten)]
    pub(super) values: Option<RegressionScores>,
    #[serde(flatten)]
    pub(super) detection: Option<Detection>,
}

impl UncertaintyReport {
    pub(super) fn begin(arguments: &UncertaintyArguments, train: &Samples, test: &Samples, needs: Needs) -> Self {
        let options = &arguments.posterior;
        let draws = |draws: usize| match options.noise_scale {
            1.0 => format!("{draws} draws"),
            scale => format!("{draws} draws, noise times {scale}"),
        };
        Self {
            kind: KIND,
            files: Vec::new(),
            network: arguments.net.display().to_string(),
            method: options.method,
            precision: arguments.precision,
            n_train: train.n_samples,
            train_size: arguments.data.train_size,
            n_test: test.n_samples,
            needs,
            prior: options.prior.name(),
            prior_precision: None,
            noise: None,
            noise_choice: options.noise.name(),
            log_evidence: None,
            predictive: options.draws.map_or("probit".to_owned(), draws),
            map: Scores::default(),
            laplace: Scores::default(),
            worse_than_network: None,
            notes: Vec::new(),
            repairs: Vec::new(),
            clipped: 0,
            seconds: 0.0,
            output: (!arguments.dry_run).then(|| arguments.output.path.display().to_string()),
        }
    }

    /// Says so where the posterior is worse than the network.
    pub(super) fn compare(&mut self) {
        let nll = |scores: &Scores| {
            scores.classes.as_ref().map(|scores| scores.nll).or(scores.values.as_ref().map(|scores| scores.nll))
        };
        if let (Some(network), Some(posterior)) = (nll(&self.map), nll(&self.laplace)) {
            let note = worse(network, posterior);
            self.worse_than_network = Some(note.is_some());
            self.notes.extend(note);
        }
    }

    pub(super) fn text(&self) -> String {
        let method = serde_json::to_value(self.method).ok();
        let method = method.as_ref().and_then(|value| value.as_str()).unwrap_or_default();
        let what = if matches!(self.method, Method::Sketch | Method::Eigen) { "feature" } else { "parameter" };
        let (train, parameters) = (count(self.n_train, "sample"), count(self.needs.n_parameters, what));
        let (Some(precision), Some(evidence), Some(output)) = (self.prior_precision, self.log_evidence, &self.output)
        else {
            let side = grouped(self.needs.side);
            let largest =
                if self.needs.side > 0 { format!(", largest matrix {side} × {side}") } else { String::new() };
            return format!(
                "{method}: {parameters}, {train}{largest}, {} at most; nothing was done\n",
                bytes(self.needs.bytes)
            );
        };
        let mut text = format!("{method}: {parameters}, {train}, {}\n", duration(self.seconds));
        let _ = write!(text, "prior precision {precision:.4} ({}), ", self.prior);
        if let Some(noise) = self.noise {
            let _ = write!(text, "noise {noise:.4} ({}), ", self.noise_choice);
        }
        let _ = writeln!(text, "log evidence {evidence:.2}\n");
        text += &self.table();
        for note in self.notes.iter().chain(&self.repairs) {
            let _ = writeln!(text, "note: {note}");
        }
        if self.clipped > 0 {
            let _ =
                writeln!(text, "note: the residual of {} had a negative part, cut off", count(self.clipped, "sample"));
        }
        let _ = writeln!(text, "\nPredictions and figures are in {output}");
        text
    }

    /// The network alone beside the posterior.
    fn table(&self) -> String {
        let mut head = vec![String::new()];
        let mut rows = vec![vec!["network".to_owned()], vec![format!("Laplace ({})", self.predictive)]];
        let (map, laplace) = (&self.map, &self.laplace);
        let mut column = |name: &str, map: Option<f64>, laplace: Option<f64>, percent: bool| {
            if map.is_none() && laplace.is_none() {
                return;
            }
            head.push(name.to_owned());
            for (row, value) in rows.iter_mut().zip([map, laplace]) {
                row.push(value.map_or("–".to_owned(), |value| match percent {
                    true => format!("{:.2} %", 100.0 * value),
                    false => format!("{value:.4}"),
                }));
            }
        };
        let classes =
            |read: fn(&ClassScores) -> f64| (map.classes.as_ref().map(read), laplace.classes.as_ref().map(read));
        for (name, (map, laplace), percent) in [
            ("accuracy", classes(|scores| scores.accuracy), true),
            ("NLL", classes(|scores| scores.nll), false),
            ("ECE", classes(|scores| scores.ece), false),
            ("Brier", classes(|scores| scores.brier), false),
        ] {
            column(name, map, laplace, percent);
        }
        let values =
            |read: fn(&RegressionScores) -> f64| (map.values.as_ref().map(read), laplace.values.as_ref().map(read));
        for (name, (map, laplace)) in [("RMSE", values(|scores| scores.rmse)), ("NLL", values(|scores| scores.nll))] {
            column(name, map, laplace, false);
        }
        let other =
            |read: fn(&Detection) -> f64| (map.detection.as_ref().map(read), laplace.detection.as_ref().map(read));
        for (name, (map, laplace)) in [("AUROC", other(|found| found.auroc)), ("AUPR", other(|found| found.aupr))] {
            column(name, map, laplace, false);
        }
        if head.len() == 1 {
            return "no labels and no other data: nothing to score\n".to_owned();
        }
        let right: Vec<usize> = (1..head.len()).collect();
        rows.insert(0, head);
        table(&rows, &right)
    }
}
