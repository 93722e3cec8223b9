//! What the findings of a result say, in sentences.
//!
//! Jobs that speak for themselves store `sentences` in their findings. For the others the sentences are made here, from
//! the same findings, so that a report and `mercer info` say the same, also of results that were written earlier.

use crate::text::{count, grouped};
use mercer_spectral::Repairs;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A sentence about a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sentence {
    /// The sentence.
    pub text: String,
    /// How much it matters, from 0 to 1.
    pub weight: f64,
    /// The figure that shows it, by the name of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<&'static str>,
}

/// The sentences of a result, by the name of its job; the most important first.
pub(crate) fn sentences(job: &str, result: &Value) -> Vec<Sentence> {
    let mut words = Words { result, all: Vec::new() };
    match job {
        "train" => words.train(),
        "explain" => words.explain(),
        "audit" => words.audit(),
        "uncertainty" => words.uncertainty(),
        "eigen" => words.eigen(),
        "fit" => words.fit(),
        _ => {}
    }
    words.stored(job);
    let mut all = words.all;
    all.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    all
}

/// What a result warns of: repairs, solvers that stopped early, posteriors that do worse.
pub(crate) fn warnings(result: &Value) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    match &result["repairs"] {
        Value::Array(repairs) => all.extend(repairs.iter().filter_map(Value::as_str).map(str::to_owned)),
        Value::Object(_) => {
            let repairs = Repairs::deserialize(&result["repairs"]).unwrap_or_default();
            all.extend(repairs.sentences().iter().map(|text| sentence(text)));
        }
        _ => {}
    }
    if result["converged"] == false {
        all.push("The solver stopped before it converged: the numbers are the best it found.".to_owned());
    }
    if result["worse_than_network"] == true {
        all.push(
            "The posterior predicts the labels worse than the network alone; another prior may do better.".to_owned(),
        );
    }
    if let Some(clipped) = result["clipped"].as_u64().filter(|&clipped| clipped > 0) {
        all.push(format!("{} had a negative part, which was cut off.", count(clipped as usize, "variance")));
    }
    all
}

/// Words as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// Below this τ a surrogate is poor, as `mercer explain` says.
const LOW: f64 = 0.6;

struct Words<'a> {
    result: &'a Value,
    all: Vec<Sentence>,
}

impl Words<'_> {
    fn number(&self, pointer: &str) -> Option<f64> {
        self.result.pointer(pointer).and_then(Value::as_f64)
    }

    fn whole(&self, pointer: &str) -> Option<usize> {
        self.result.pointer(pointer).and_then(Value::as_u64).map(|number| number as usize)
    }

    fn text(&self, pointer: &str) -> &str {
        self.result.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    fn say(&mut self, weight: f64, figure: Option<&'static str>, text: String) {
        self.all.push(Sentence { text, weight, figure });
    }

    /// The sentences that a job stored, in their order.
    fn stored(&mut self, job: &str) {
        // Figures in the order of the sentences that they belong to.
        let (start, figure): (f64, Option<&'static str>) = match job {
            "shift" => (0.9, None),
            "compare" => (0.75, None),
            "probe" => (0.72, Some("accuracy.svg")),
            "spectrum" => (0.62, Some("weights.svg")),
            _ => (0.6, None),
        };
        let stored = self.result["sentences"].as_array().cloned().unwrap_or_default();
        for (at, sentence) in stored.iter().filter_map(Value::as_str).enumerate() {
            let own = match (job, sentence) {
                ("probe", text) if text.contains("NC1") => Some("collapse.svg"),
                ("probe", text) if text.contains("principal component") => Some("layers.svg"),
                ("spectrum", text) if text.contains(" kernel") => Some("kernels.svg"),
                _ => figure,
            };
            self.say((start - 0.07 * at as f64).max(0.05), own, sentence.to_owned());
        }
    }

    fn train(&mut self) {
        let Some(last) = self.result["history"].as_array().and_then(|all| all.last()).cloned() else { return };
        let (trained, unseen) = (last["accuracy"].as_f64(), last["evaluation_accuracy"].as_f64());
        let (n_train, n_unseen) = (self.whole("/n_samples").unwrap_or(0), self.whole("/n_evaluation_samples"));
        let curve = Some("course.svg");
        if let (Some(accuracy), Some(n)) = (unseen, n_unseen) {
            let text = format!(
                "The network is right on {} of {} unseen samples{}.",
                percent(accuracy),
                grouped(n),
                interval(accuracy, n)
            );
            self.say(1.0, curve, text);
            if let Some(gap) = trained.map(|trained| trained - accuracy).filter(|gap| gap.abs() >= 0.01) {
                let trained = percent(trained.unwrap_or_default());
                let word = if gap > 0.0 { "more" } else { "fewer" };
                let text = format!(
                    "On its own training labels it is right on {trained}, {:.1} points {word} than on unseen samples.",
                    100.0 * gap.abs()
                );
                self.say((0.3 + 3.0 * gap.abs()).min(0.8), curve, text);
            }
        } else if let Some(accuracy) = trained {
            let text =
                format!("The network is right on {} of its {} training samples.", percent(accuracy), grouped(n_train));
            self.say(0.8, curve, text);
        } else if let Some(loss) = last["loss"].as_f64() {
            self.say(0.6, curve, format!("The training loss ended at {loss:.4}."));
        }
        let first = self.number("/history/0/loss");
        if let (Some(first), Some(end), Some(epochs)) = (first, last["loss"].as_f64(), last["epoch"].as_u64()) {
            let text = format!("In {} the loss went from {first:.3} to {end:.3}.", count(epochs as usize, "epoch"));
            self.say(0.2, curve, text);
        }
    }

    fn explain(&mut self) {
        if let Some(best) = self.result["surrogates"].get(0).cloned() {
            let (kernel, found) = (best["kernel"].as_str().unwrap_or_default(), &best["faithfulness"]);
            if let Some(tau) = found["tau"].as_f64() {
                let ends = [&found["tau_interval"][0], &found["tau_interval"][1]].map(serde_json::Value::as_f64);
                let interval = match ends {
                    [Some(low), Some(high)] => format!(" (95 %: {low:.2}–{high:.2})"),
                    _ => String::new(),
                };
                let agrees = found["agreement"].as_f64();
                let agrees = agrees
                    .map_or(String::new(), |share| format!(", and agrees with {} of its decisions", percent(share)));
                let text = format!(
                    "A machine on the kernel {kernel} can stand in for the network: it ranks the test samples alike, with \
                     τ = {tau:.2}{interval}{agrees}."
                );
                let poor = format!(
                    "A machine on the kernel {kernel} stands in for the network only roughly: τ = {tau:.2}{interval}{agrees}."
                );
                self.say(0.87, Some("faithfulness.svg"), if tau < LOW { poor } else { text });
            }
        }
        let said = self.result["recommendation"].as_array().cloned().unwrap_or_default();
        for (at, sentence) in said.iter().filter_map(Value::as_str).enumerate() {
            let weight = if at == 0 { 0.45 } else { 0.4 - 0.02 * at as f64 };
            self.say(weight, Some("faithfulness.svg"), sentence.to_owned());
        }
        if let Some(accuracy) = self.number("/network_accuracy") {
            let n = self.whole("/n_test").unwrap_or(0);
            let text = format!(
                "The network is right on {} of {} test samples{}.",
                percent(accuracy),
                grouped(n),
                interval(accuracy, n)
            );
            self.say(0.5, None, text);
        }
        if let (Some(effective), Some(share)) =
            (self.number("/summary/effective_samples"), self.number("/summary/top_share"))
        {
            let text = format!(
                "A score rests on {} training samples in effect; the largest listed ones carry {} of it.",
                grouped(effective.round().max(0.0) as usize),
                percent(share)
            );
            self.say(0.55, Some("boxes.svg"), text);
        }
        if let (Some(doubtful), Some(n)) = (self.whole("/n_doubtful"), self.whole("/n_test")) {
            let share = doubtful as f64 / n.max(1) as f64;
            let text = format!(
                "On {} of {} test samples the explanation should not be trusted: network and surrogate differ there.",
                grouped(doubtful),
                grouped(n)
            );
            self.say((0.35 + 2.0 * share).min(0.9), Some("faithfulness.svg"), text);
        }
    }

    fn audit(&mut self) {
        let (n, disputed) = (self.whole("/n_samples").unwrap_or(0), self.whole("/n_disputed").unwrap_or(0));
        let noise = self.number("/estimated_noise").unwrap_or(0.0);
        let text = format!(
            "At least two opinions suggest another label for {} of {} training samples; about {} of all labels look wrong.",
            grouped(disputed),
            grouped(n),
            percent(noise)
        );
        self.say(if disputed > 0 { 0.95 } else { 0.45 }, None, text);
        if let Some(found) = self.result["measures"].get(0).cloned() {
            let wrong = found["wrong"].as_u64().unwrap_or(0) as usize;
            let budgets = found["budgets"].as_array().cloned().unwrap_or_default();
            let good = budgets.iter().find(|at| at["found"].as_f64().unwrap_or(0.0) >= 0.9 * wrong as f64 && wrong > 0);
            if let Some(at) = good.or(budgets.last()) {
                let area = found["auroc"]
                    .as_f64()
                    .map_or(String::new(), |area| format!(" (area under the ROC curve {area:.3})"));
                let text = format!(
                    "Of {} that are known to be wrong, {} are among the first {} of the review list{area}.",
                    count(wrong, "label"),
                    // Ties count in proportion.
                    grouped(at["found"].as_f64().unwrap_or(0.0).round() as usize),
                    grouped(at["inspected"].as_u64().unwrap_or(0) as usize)
                );
                self.say(0.97, Some("found.svg"), text);
            }
        }
        if let Some(accuracy) = self.number("/out_of_fold_accuracy") {
            let own = self
                .number("/training_accuracy")
                .map_or(String::new(), |own| format!(", the network on {}", percent(own)));
            let text =
                format!("A surrogate that has not seen a label predicts it in {} of cases{own}.", percent(accuracy));
            self.say(0.4, None, text);
        }
        let conflicts = self.whole("/duplicates/n_conflicts").unwrap_or(0);
        if conflicts > 0 {
            self.say(
                0.7,
                None,
                format!("{} of the same samples have contradicting labels.", count(conflicts, "group")),
            );
        }
        let poison = self.result["poison"].as_array().cloned().unwrap_or_default();
        for own in poison.iter().filter(|own| own["suspicious"] == true) {
            let class = own["class"].as_str().unwrap_or_default();
            let text = format!("Class {class} has a small, well separated cluster, as poisoned samples form one.");
            self.say(0.75, None, text);
        }
    }

    fn uncertainty(&mut self) {
        if let (Some(own), alone) = (self.number("/laplace/auroc"), self.number("/map/auroc")) {
            let beside = alone.map_or(String::new(), |alone| format!("; the network alone has {alone:.3}"));
            let text = format!(
                "Samples of another kind are told apart by their uncertainty with an area under the ROC curve of {own:.3}{beside}."
            );
            let figure = if self.number("/laplace/rmse").is_some() { "deviation.svg" } else { "entropy.svg" };
            self.say(0.8, Some(figure), text);
        }
        if let (Some(own), Some(alone)) = (self.number("/laplace/ece"), self.number("/map/ece")) {
            let [nll, nll_alone] = ["/laplace/nll", "/map/nll"].map(|at| self.number(at).unwrap_or(f64::NAN));
            let text = format!(
                "Its calibration error is {alone:.3}, and {own:.3} with parameter uncertainty (negative log-likelihood {nll_alone:.3} and {nll:.3})."
            );
            self.say(0.58, Some("reliability.svg"), text);
        }
        if let (Some(temperature), Some(n_samples)) =
            (self.number("/chosen/temperature"), self.number("/chosen/n_samples"))
        {
            let taken = match self.text("/chosen/predictor") {
                "temperature" => format!("the network's own probabilities at the temperature {temperature:.2}"),
                _ => "the posterior".to_owned(),
            };
            let text =
                format!("{n_samples} samples that the network was not trained on chose {taken} as the prediction.");
            self.say(0.5, Some("reliability.svg"), text);
        }
        if let Some(prior) = self.number("/prior_precision") {
            let (method, by) = (self.text("/method").to_owned(), self.text("/prior").to_owned());
            self.say(0.2, None, format!("The {method} posterior has a prior of precision {prior:.3} ({by})."));
        }
    }

    fn eigen(&mut self) {
        let values: Vec<f64> =
            self.result["values"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        if values.is_empty() {
            return;
        }
        let figure = Some("functions.svg");
        let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        if let Some(all) = self.number("/mean_diagonal").filter(|all| *all > 0.0) {
            let text = format!(
                "The first {} carry {} of the kernel.",
                count(values.len(), "eigenfunction"),
                percent(sum / all)
            );
            self.say(0.6, figure, text);
        }
        if squares > 0.0 {
            let text = format!(
                "They count as {:.1} directions of equal strength; the first has {} of their sum.",
                sum * sum / squares,
                percent(values[0] / sum)
            );
            self.say(0.5, figure, text);
        }
        let best = self.result["codes"]["lengths"].as_array().and_then(|all| all.last());
        if let Some(accuracy) = best.and_then(|best| best["accuracy"].as_f64()) {
            let text =
                format!("A linear classifier on them is right on {} of the held-out samples.", percent(accuracy));
            self.say(0.55, figure, text);
        }
    }

    fn fit(&mut self) {
        let (machine, n) = (self.text("/machine").to_owned(), self.whole("/n_samples").unwrap_or(0));
        let quality = self.number("/training_accuracy").map(|accuracy| format!("is right on {} of", percent(accuracy)));
        let quality = quality.unwrap_or_else(|| "was fitted to".to_owned());
        self.say(0.35, None, format!("The machine {machine} {quality} its {} training samples.", grouped(n)));
        if let Some(vectors) = self.whole("/support_vectors") {
            self.say(0.3, None, format!("It rests on {} support vectors.", grouped(vectors)));
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The 95 % interval of a share of `n` samples (Wilson 1927), in words.
fn interval(share: f64, n: usize) -> String {
    if n == 0 {
        return String::new();
    }
    let (low, high) = wilson(share, n);
    format!(" (95 %: {:.1}–{:.1} %)", 100.0 * low, 100.0 * high)
}

fn wilson(share: f64, n: usize) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let n = n as f64;
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Newcombe (1998), table I: 81 of 263 is 0.2553 to 0.3662; 0 of 20 is 0 to 0.1611.
    #[test]
    fn intervals_are_wilson_s() {
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-4, "{found} {wanted}");
        for (share, n, low, high) in [(81.0 / 263.0, 263, 0.2553, 0.3662), (0.0, 20, 0.0, 0.1611)] {
            let found = wilson(share, n);
            near(found.0, low);
            near(found.1, high);
        }
        near(wilson(1.0, 10).1, 1.0);
    }

    #[test]
    fn stored_sentences_keep_their_order() {
        let result = json!({ "sentences": ["first", "second"], "repairs": ["jitter 1e-8"], "converged": false });
        let found: Vec<String> = sentences("shift", &result).into_iter().map(|own| own.text).collect();
        assert_eq!(found, ["first", "second"]);
        assert_eq!(warnings(&result).len(), 2);
        assert!(sentences("unknown", &Value::Null).is_empty());
        let seen = |all_seen| json!({ "repairs": { "dropped": 0, "negative": 2, "most_negative": -0.5, "all_seen": all_seen } });
        let found = [true, false].map(|all| warnings(&seen(all)));
        assert!(found[0][0].starts_with("2 negative") && found[1][0].starts_with("At least 2"), "{found:?}");
        assert!(warnings(&json!({ "repairs": { "all_seen": true, "negative": 0 } })).is_empty());
    }
}
