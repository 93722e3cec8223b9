//! What was found, in words.

use super::findings::{CompareFindings, NetworkFindings, PairFindings};

/// Predictions that differ by less than this share are near each other.
const NEAR: f64 = 0.05;

/// Sentences about the findings, the most important first.
pub(super) fn sentences(found: &CompareFindings) -> Vec<String> {
    let mut all: Vec<String> = found.pairs.iter().map(about).collect();
    for one in &found.matrices {
        if let Some(mass) = one.mass
            && let (Some(share), Some(least)) = (mass.share, mass.least_distance)
        {
            all.push(format!(
                "{} of the squares of {} lie between outputs; no scalar kernel is nearer to it than {least:.3}.",
                percent(share),
                one.name
            ));
        }
        if let Some(fit) = one.fit
            && fit.residual > 1e-6
        {
            all.push(format!(
                "The linear network of {} leaves {} of what it should learn; {:.2e} was added to its diagonal.",
                one.name,
                percent(fit.residual),
                fit.ridge
            ));
        }
        if one.factor != 1.0 {
            all.push(format!("{} is a sum over outputs, and was multiplied by {:.3}.", one.name, one.factor));
        }
    }
    all.extend(trends(&found.networks));
    all
}

/// A pair: predictions first, if there are any.
fn about(pair: &PairFindings) -> String {
    let (a, b) = (&pair.a, &pair.b);
    let distance = format!("the distance of the matrices is {:.3}", pair.likeness.frobenius);
    let scaled = match pair.likeness.scale {
        Some(scale) if pair.likeness.scaled_frobenius < 0.9 * pair.likeness.frobenius => {
            format!(" ({:.3} after multiplying {b} by {scale:.3})", pair.likeness.scaled_frobenius)
        }
        _ => String::new(),
    };
    let cka = pair.likeness.cka.map_or(String::new(), |cka| format!(", CKA {cka:.3}"));
    let Some(predictions) = pair.predictions else {
        return format!("{b} beside {a}: {distance}{scaled}{cka}.");
    };
    let verdict = if predictions < NEAR { "stands in for" } else { "does not stand in for" };
    let right = match (pair.accuracy_a, pair.accuracy_b) {
        (Some(first), Some(second)) => format!(", {} instead of {} are right", percent(second), percent(first)),
        _ => String::new(),
    };
    format!("{b} {verdict} {a}: predictions differ by {}{right}; {distance}{scaled}{cka}.", percent(predictions))
}

/// How the first pair changes from the narrowest to the widest network, and from the first to the last checkpoint.
fn trends(networks: &[NetworkFindings]) -> Vec<String> {
    let mut all = Vec::new();
    let Some(pair) = networks.first().and_then(|one| one.pairs.first()) else { return all };
    let name = format!("{} and {}", pair.a, pair.b);
    let widths = distinct(networks.iter().filter_map(|one| one.width));
    let first_time = networks.first().map(time);
    let at_start = |width: f64| {
        let own = networks.iter().filter(|one| one.width == Some(width) && Some(time(one)) == first_time);
        mean(own.map(|one| one.pairs[0].likeness.frobenius))
    };
    let (narrow, wide) =
        widths.into_iter().fold((f64::INFINITY, 0.0_f64), |(low, high), width| (low.min(width), high.max(width)));
    if wide > narrow
        && let (Some(from), Some(to)) = (at_start(narrow), at_start(wide))
    {
        all.push(format!(
            "From width × {narrow} to × {wide}, the distance of {name} {} from {from:.3} to {to:.3}.",
            moved(from, to)
        ));
    }
    let last_time = networks.last().map(time);
    if first_time != last_time {
        let at = |wanted: &Option<String>, value: fn(&PairFindings) -> Option<f64>| {
            let own = networks.iter().filter(|one| Some(time(one)) == *wanted);
            mean(own.filter_map(|one| value(&one.pairs[0])))
        };
        type Measure = fn(&PairFindings) -> Option<f64>;
        let measures: [(&str, Measure); 2] = [
            ("the difference of predictions", |pair| pair.predictions),
            ("the distance", |pair| Some(pair.likeness.frobenius)),
        ];
        for (what, value) in measures {
            if let (Some(from), Some(to)) = (at(&first_time, value), at(&last_time, value)) {
                let (start, end) = (first_time.clone().unwrap_or_default(), last_time.clone().unwrap_or_default());
                all.push(format!(
                    "From {start} to {end}, {what} of {name} {} from {from:.3} to {to:.3}.",
                    moved(from, to)
                ));
            }
        }
    }
    all
}

/// The checkpoint or epoch of a network, without its width and seed.
pub(super) fn time(one: &NetworkFindings) -> String {
    let epoch = one.epoch.map(|epoch| format!("epoch {epoch}"));
    epoch.or_else(|| one.checkpoint.clone()).unwrap_or_default()
}

fn moved(from: f64, to: f64) -> &'static str {
    if to < from { "falls" } else { "rises" }
}

/// Different values, in the order in which they come.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
