//! Text output of the command.

use crate::format::table;
use mercer::job::Outcome;
use mercer::job::explain::{
    ExplainFindings, ExplainPlan, FillFindings, SanityFindings, SurrogateFindings, ValidationFindings,
};
use mercer::text::{bytes, count, duration};
use std::fmt::Write;
use std::path::Path;

/// Describes the planned work.
pub(super) fn plan(plan: &ExplainPlan) -> String {
    let (train, test) = (count(plan.n_train, "training sample"), count(plan.n_test, "test sample"));
    let kernels = plan.kernels.join(", ");
    format!("{kernels} on {train} and {test}, {} at most; nothing was done\n", bytes(plan.bytes))
}

/// Describes a part of the kernel values.
pub(super) fn filled(found: &FillFindings) -> String {
    let (tiles, blocks) = (count(found.tiles_computed, "tile"), count(found.prepared_blocks, "block"));
    format!("part {} of {}: {tiles} computed, {blocks} prepared\n", found.part.part, found.part.of)
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<ExplainFindings>, folder: &Path) -> String {
    let found = &outcome.findings;
    let (train, test) = (count(found.n_train, "training sample"), count(found.n_test, "test sample"));
    let mut text = format!("{}: {train}, {test}, {}\n", found.network, duration(outcome.measurements.seconds));
    if let Some(accuracy) = found.network_accuracy {
        let _ = writeln!(text, "accuracy of the network {:.2} %", 100.0 * accuracy);
    }
    let _ = writeln!(text, "\nFaithfulness at the {} class, most faithful first:", found.compared_class);
    text += &surrogates(&found.surrogates);
    text += &elsewhere(found);
    for sentence in &found.recommendation {
        let _ = writeln!(text, "{sentence}");
    }
    let attribution = &found.summary;
    let _ = writeln!(
        text,
        "\nA score rests on {:.0} training samples in effect; the listed ones carry {:.1} % of it. In {:.0} % of the \
         groups the mean lies between the quartiles.",
        attribution.effective_samples,
        100.0 * attribution.top_share,
        100.0 * attribution.mean_inside_quartiles
    );
    if let Some(layers) = &attribution.layers {
        let mut rows = vec![vec!["layer".to_owned(), "mean part of the score".to_owned(), "share".to_owned()]];
        let cells = |layer: &mercer::job::explain::LayerShare| {
            vec![layer.layer.clone(), format!("{:.4}", layer.mean), format!("{:.1} %", 100.0 * layer.share)]
        };
        rows.extend(layers.iter().map(cells));
        let _ = writeln!(text, "\n{}", table(&rows, &[1, 2]).trim_end());
    }
    if let Some(validation) = &found.validation {
        text += &validated(validation);
    }
    if found.n_doubtful > 0 {
        let _ = writeln!(
            text,
            "On {} of {} the explanation should not be trusted: network and surrogate differ there (local.csv).",
            found.n_doubtful, test
        );
    }
    let _ = writeln!(text, "\nAttributions, figures and the surrogate are in {}", folder.display());
    text
}

/// A number with three digits.
fn short(value: f64) -> String {
    format!("{value:.2e}").parse::<f64>().map_or_else(|_| value.to_string(), |rounded| rounded.to_string())
}

fn surrogates(found: &[SurrogateFindings]) -> String {
    let head =
        ["kernel", "machine", "penalty", "τ", "95 %", "ties", "τ softmax", "saturated", "TAD", "agreement", "R²"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for surrogate in found {
        let faithful = &surrogate.faithfulness;
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        let interval = faithful.tau_interval.map_or("–".to_owned(), |[low, high]| format!("{low:.3}–{high:.3}"));
        let penalty = match (surrogate.penalty, surrogate.penalty_norm) {
            (Some(penalty), Some(norm)) => format!("{} ({norm})", short(penalty)),
            _ => "–".to_owned(),
        };
        rows.push(vec![
            surrogate.kernel.clone(),
            surrogate.machine.to_string(),
            penalty,
            number(faithful.tau),
            interval,
            faithful.n_ties.to_string(),
            number(faithful.softmax.tau),
            faithful.softmax.n_saturated.to_string(),
            faithful.tad.map_or("–".to_owned(), |tad| format!("{:+.2} %", 100.0 * tad)),
            format!("{:.2} %", 100.0 * faithful.agreement),
            number(faithful.r2),
        ]);
    }
    table(&rows, &[3, 4, 5, 6, 7, 8, 9, 10])
}

/// Faithfulness on samples of another kind, and on perturbed ones.
fn elsewhere(found: &ExplainFindings) -> String {
    let mut rows = vec![["kernel", "machine", "samples", "τ", "agreement"].map(str::to_owned).to_vec()];
    let perturbed = found.fgsm.as_ref().map_or(String::new(), |fgsm| match fgsm.network_accuracy {
        Some(accuracy) => format!("FGSM {} (network {:.1} %)", fgsm.epsilon, 100.0 * accuracy),
        None => format!("FGSM {}", fgsm.epsilon),
    });
    for own in &found.surrogates {
        let sets = [("other kind", &own.faithfulness_ood), (&perturbed[..], &own.faithfulness_fgsm)];
        for (samples, faithful) in sets.into_iter().filter_map(|(name, set)| Some((name, set.as_ref()?))) {
            rows.push(vec![
                own.kernel.clone(),
                own.machine.to_string(),
                samples.to_owned(),
                faithful.tau.map_or("–".to_owned(), |tau| format!("{tau:.3}")),
                format!("{:.2} %", 100.0 * faithful.agreement),
            ]);
        }
    }
    if rows.len() == 1 { String::new() } else { format!("\nOn other samples:\n{}", table(&rows, &[3, 4])) }
}

/// Whether scores predict what happens when training data is left out.
fn validated(found: &ValidationFindings) -> String {
    if !found.sanity.is_empty() {
        return shuffled(&found.sanity);
    }
    let mut text = format!("\nCompared with {}:\n", count(found.n_networks, "retrained network"));
    if let Some(removal) = &found.removal {
        let mut rows = vec![["removed", "drop by score", "drop at random", "difference"].map(str::to_owned).to_vec()];
        for point in &removal.points {
            rows.push(vec![
                point.removed.to_string(),
                format!("{:.3}", point.by_score),
                format!("{:.3}", point.at_random),
                format!("{:+.3}", point.difference.mean),
            ]);
        }
        text += &table(&rows, &[0, 1, 2, 3]);
        text += "A drop is how far the log-odds of the compared class fall without these samples, on average.\n";
        return text;
    }
    let mut rows = vec![["method", "damping", "LDS", "95 %", "significant"].map(str::to_owned).to_vec()];
    for own in &found.methods {
        let score = own.score.as_ref();
        let interval = score.and_then(|score| score.interval);
        rows.push(vec![
            own.method.clone(),
            own.damping.map_or("–".to_owned(), |damping| damping.to_string()),
            score.map_or("–".to_owned(), |score| format!("{:.3}", score.mean)),
            interval.map_or("–".to_owned(), |[low, high]| format!("{low:.3}–{high:.3}")),
            own.significant.map_or("–".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
        ]);
    }
    text += &table(&rows, &[1, 2, 3, 4]);
    if let Some(ceiling) = found.ceiling {
        let _ = writeln!(text, "The noise of training allows at most {ceiling:.3}.");
    }
    text
}

/// From this rank correlation on, attributions of the shuffled network are much like those of the trained one.
const ALIKE: f64 = 0.5;

/// Whether attributions depend on the weights.
fn shuffled(found: &[SanityFindings]) -> String {
    let mut rows =
        vec![["weights shuffled from", "layers", "rank correlation", "accuracy"].map(str::to_owned).to_vec()];
    for stage in found {
        rows.push(vec![
            stage.layer.clone(),
            stage.n_shuffled.to_string(),
            stage.correlation.as_ref().map_or("–".to_owned(), |found| format!("{:+.3}", found.mean)),
            stage.network_accuracy.map_or("–".to_owned(), |share| format!("{:.2} %", 100.0 * share)),
        ]);
    }
    let last = found.last().and_then(|stage| stage.correlation.as_ref());
    let verdict = match last.map(|found| found.mean) {
        Some(mean) if mean >= ALIKE => {
            "They stay much the same: they depend on the samples and the architecture more than on what was learnt."
        }
        Some(_) => "They change: they depend on what was learnt.",
        None => "",
    };
    format!(
        "\nCompared with attributions of the network with shuffled weights:\n{}{verdict}\n",
        table(&rows, &[1, 2, 3])
    )
}
