//! Text output of the command.

use crate::commands::uncertainty::report::regions;
use mercer::job::Outcome;
use mercer::job::predict::{
    FunctionFindings, NetworkFindings, PosteriorFindings, PredictFindings, PredictPlan, Quality,
};
use mercer::text::{count, duration, grouped, shape};

/// Describes the planned work.
pub(super) fn plan(plan: &PredictPlan) -> String {
    let mut text = format!("{}: {}", plan.kind, count(plan.n_samples, "sample"));
    if let Some(numbers) = plan.numbers {
        text += &format!(", {} each", count(numbers, "number"));
    }
    if let Some(gflop) = plan.gflop {
        text += &format!(", {gflop:.3} GFLOP");
    }
    text + "; nothing was done\n"
}

/// Describes the result.
pub(super) fn outcome(outcome: &Outcome<PredictFindings>) -> String {
    match &outcome.findings {
        PredictFindings::Network(found) => {
            let measured = &outcome.measurements;
            network(found, measured.seconds, measured.number("samples_per_second").unwrap_or(0.0))
        }
        PredictFindings::Machine(found) => {
            by(found.n_samples, &found.machine)
                + &quality(&found.quality)
                + &array(&found.shape, found.output.as_deref())
                + &variances(found.variances.as_deref())
        }
        PredictFindings::Posterior(found) => posterior(found),
        PredictFindings::Functions(found) => functions(found),
        _ => String::new(),
    }
}

fn network(found: &NetworkFindings, seconds: f64, rate: f64) -> String {
    let (samples, rate) = (count(found.n_samples, "sample"), grouped(rate.round() as usize));
    let mut text = format!("{samples} in {} ({rate} per second)\n", duration(seconds));
    if let Some(score) = &found.score {
        text += &format!("{score}\n");
    }
    if let Some(output) = &found.output {
        let whole: Vec<usize> = std::iter::once(found.n_samples).chain(found.shape.iter().copied()).collect();
        text += &format!("{} of shape {} in {output}\n", found.at, shape(&whole));
    }
    text
}

fn by(n_samples: usize, place: &str) -> String {
    format!("{} by {place}\n", count(n_samples, "sample"))
}

fn posterior(found: &PosteriorFindings) -> String {
    let mut text = by(found.n_samples, &found.posterior) + &quality(&found.quality);
    text += &found.conformal.as_ref().map(regions).unwrap_or_default();
    text += &array(&found.shape, found.output.as_deref());
    text += &variances(found.variances.as_deref());
    text + &found.regions.as_ref().map(|place| format!("sets in {place}\n")).unwrap_or_default()
}

fn variances(place: Option<&str>) -> String {
    place.map(|place| format!("variances in {place}\n")).unwrap_or_default()
}

fn quality(found: &Quality) -> String {
    let mut text = String::new();
    if let Some(accuracy) = found.accuracy {
        text += &format!("accuracy {:.2} %\n", 100.0 * accuracy);
    }
    let measures = [
        ("negative log-likelihood", found.negative_log_likelihood),
        ("expected calibration error", found.expected_calibration_error),
        ("Brier score", found.brier),
        ("root mean square error", found.root_mean_square_error),
        ("R²", found.r_squared),
        ("log-likelihood per sample", found.log_likelihood),
    ];
    for (name, value) in measures.iter().filter_map(|(name, value)| value.map(|value| (name, value))) {
        text += &format!("{name} {value:.6}\n");
    }
    text
}

fn functions(found: &FunctionFindings) -> String {
    let text = format!(
        "{} of {} by {}\n",
        count(found.components, "function"),
        count(found.n_samples, "sample"),
        found.functions
    );
    text + &array(&found.shape, found.output.as_deref())
}

fn array(size: &[usize], output: Option<&str>) -> String {
    output.map_or_else(String::new, |output| format!("array of shape {} in {output}\n", shape(size)))
}
