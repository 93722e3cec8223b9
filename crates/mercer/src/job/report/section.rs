//! The section of a result: what every job gets, from its findings alone.

use super::run::Run;
use super::{figures, samples, words};
use crate::Error;
use crate::text::{bytes, duration};
use mercer_report::page::{Drawing, FigureBlock, Section, Table};
use mercer_run::Context;
use serde_json::Value;

/// The largest figure that is read.
const LONGEST: usize = 8 << 20;

/// Settings and facts that are listed.
const LISTED: usize = 80;

/// The identifier of a figure of a section.
pub(super) fn figure_id(section: usize, file: &str) -> String {
    let stem = file.strip_suffix(".svg").unwrap_or(file);
    let plain: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("s{section}-{plain}")
}

/// The section of a result, the `at`-th of the page.
pub(super) fn section(run: &Run, at: usize, context: &Context) -> Result<Section, Error> {
    let job = run.job();
    let mut section = Section::new(job, &run.place);
    let inputs: Vec<String> =
        run.written.inputs.iter().map(|input| format!("{} {}", input.setting, once(&input.place))).collect();
    section.asked = format!("{} {}", question(job), inputs.join(" · "));
    section.sentences = words::sentences(job, &run.result).into_iter().map(|own| own.text).collect();
    section.warnings = words::warnings(&run.result);
    (section.figures, section.notes) = figures::special(run, at, context)?;
    section.notes.extend(samples::unshown(run));
    for name in run.files().filter(|name| name.ends_with(".svg")) {
        let Some(blob) = run.file(name)? else { continue };
        if blob.len() > LONGEST {
            section.notes.push(format!(
                "{name} has {}, too many for a page; it is in {}.",
                bytes(blob.len()),
                run.place
            ));
            continue;
        }
        let drawing = std::str::from_utf8(&blob).ok().and_then(Drawing::read);
        match drawing {
            Some(drawing) => section.figures.push(FigureBlock::new(figure_id(at, name), caption(job, name), drawing)),
            None => section.warnings.push(format!("{name} is not a figure that this version reads; it is left out.")),
        }
    }
    section.tables = tables(run);
    section.facts = flat(&run.result, LISTED);
    section.settings = flat(&run.written.job, LISTED);
    section.command = format!("mercer replay {}", quoted(&run.place));
    section.record = record(run);
    Ok(section)
}

/// The place of samples, once if all inputs of a network come from it, as those of a text do.
pub(super) fn once(places: &str) -> &str {
    let first = places.split(", ").next().unwrap_or(places);
    if places.split(", ").all(|place| place == first) { first } else { places }
}

/// A name within a sentence or a list.
pub(super) fn brief(name: &str) -> String {
    const LONGEST: usize = 40;
    match name.char_indices().nth(LONGEST) {
        None => name.to_owned(),
        Some((end, _)) => format!("{}…", &name[..end]),
    }
}

/// What a job asks.
fn question(job: &str) -> &'static str {
    match job {
        "train" => "How well does a network learn these samples?",
        "kernel" => "How similar are samples, seen by the network?",
        "eigen" => "What are the leading eigenfunctions?",
        "fit" => "What does a machine learn on this kernel?",
        "predict" => "What does it predict?",
        "uncertainty" => "How sure may the network be?",
        "explain" => "Which training samples explain the predictions, and how faithful is that?",
        "audit" => "Which training data look wrong?",
        "probe" => "What do the layers know, and in how few directions?",
        "spectrum" => "Which eigenvalues of weights and kernels are more than noise?",
        "shift" => "Do these data differ from those that the network knows?",
        "compare" => "How do they differ?",
        _ => "",
    }
}

/// What a figure shows.
fn caption(job: &str, file: &str) -> String {
    let known = match (job, file) {
        ("explain", "faithfulness.svg") => {
            "Log-odds of the network against those of the surrogate, a point per test sample. Click on a point to see the sample, if it is among the listed ones."
        }
        ("explain", "means.svg") => "The mean attribution to training samples of each group, by predicted class.",
        ("explain", "boxes.svg") => "The distribution of attributions, for some test samples.",
        ("explain", "examples.svg") => "Test samples, and the training samples that support their prediction most.",
        ("audit", "found.svg") => "How many of the wrong samples are found by inspecting the head of the review list.",
        ("uncertainty", "entropy.svg") => "The entropy of predictions, for test samples and samples of another kind.",
        ("uncertainty", "reliability.svg") => "Accuracy against confidence.",
        ("uncertainty", "deviation.svg") => "The standard deviation of the outputs.",
        ("eigen", "functions.svg") => {
            "Samples in the coordinates of the first eigenfunctions, and the eigenvalues. Points in space can be turned, by dragging or with the arrow keys."
        }
        ("probe", "accuracy.svg") => "Accuracy of three probes against the number of principal components.",
        ("probe", "layers.svg") => "What every layer needs and uses.",
        ("probe", "collapse.svg") => "Neural collapse.",
        ("probe", "similarity.svg") => "The similarity of layers.",
        ("spectrum", "weights.svg") => "Eigenvalues of weights, and the law of noise that fits their bulk.",
        ("spectrum", "kernels.svg") => "Eigenvalues of the kernels.",
        ("spectrum", "quantiles.svg") => "Quantiles of eigenvalues, at the last checkpoint against the first.",
        ("spectrum", "training.svg") => "What changes from checkpoint to checkpoint.",
        _ => "",
    };
    if known.is_empty() { file.trim_end_matches(".svg").replace(['_', '-'], " ") } else { known.to_owned() }
}

/// A path as a shell takes it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A value in a table.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(x)) => short(x),
            (None, None) => number.to_string(),
        },
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            let first: Vec<String> = items.iter().take(12).map(shown).collect();
            let more = if items.len() > 12 { format!(", … ({} in all)", items.len()) } else { String::new() };
            format!("{}{more}", first.join(", "))
        }
        other => other.to_string(),
    }
}

/// A number with five digits.
pub(super) fn short(x: f64) -> String {
    if x != 0.0 && !(1e-4..1e6).contains(&x.abs()) {
        return format!("{x:.3e}");
    }
    let digits = (4 - x.abs().max(1e-4).log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{x:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The single values of an object and of the objects in it, with readable names.
fn flat(value: &Value, most: usize) -> Vec<(String, String)> {
    fn walk(prefix: &str, value: &Value, depth: usize, found: &mut Vec<(String, String)>) {
        let Value::Object(map) = value else { return };
        for (name, value) in map {
            let name = if prefix.is_empty() {
                name.replace('_', " ")
            } else {
                format!("{prefix}, {}", name.replace('_', " "))
            };
            match value {
                Value::Object(_) if depth < 3 => walk(&name, value, depth + 1, found),
                Value::Object(_) => {}
                Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {}
                Value::Array(items) if items.is_empty() => {}
                value => found.push((name, shown(value))),
            }
        }
    }
    let mut found = Vec::new();
    walk("", value, 0, &mut found);
    found.retain(|(name, _)| !["name", "kind", "sentences", "recommendation"].contains(&name.as_str()));
    found.truncate(most);
    found
}

/// The lists of objects in the findings, as tables.
fn tables(run: &Run) -> Vec<Table> {
    let mut tables = Vec::new();
    let Value::Object(result) = &run.result else { return tables };
    for (name, value) in result {
        let name = name.replace('_', " ");
        match value {
            Value::Array(items) => {
                tables.extend(table(&name, items, &run.place));
                // The lists of the last of several, such as the weights of the last checkpoint.
                if let Some(Value::Object(last)) = items.last() {
                    for (inner, value) in last {
                        // The layers of the last checkpoint are listed already.
                        if let Value::Array(items) = value
                            && !result.contains_key(inner)
                        {
                            tables.extend(table(
                                &format!("{} of the last of the {name}", inner.replace('_', " ")),
                                items,
                                &run.place,
                            ));
                        }
                    }
                }
            }
            Value::Object(inner) => {
                for (part, value) in inner {
                    if let Value::Array(items) = value {
                        tables.extend(table(&format!("{name}: {}", part.replace('_', " ")), items, &run.place));
                    }
                }
            }
            _ => {}
        }
    }
    tables
}

/// Columns that say what a row is about, in the order in which they are shown.
const FIRST: [&str; 12] =
    ["name", "epoch", "kernel", "machine", "layer", "node", "class", "a", "b", "test", "fraction", "inspected"];

/// A table of objects; none for a list of anything else.
fn table(title: &str, items: &[Value], place: &str) -> Option<Table> {
    const COLUMNS: usize = 24;
    let rows: Vec<Vec<(String, String)>> = items.iter().take(200).map(cells).collect();
    let mut columns: Vec<String> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if columns.len() < COLUMNS && !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    if columns.is_empty() {
        return None;
    }
    // What a row is about comes first.
    columns.sort_by_key(|name| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    let mut table = Table::new(title, columns.iter().cloned(), format!("{place}/result.json"));
    for row in &rows {
        let cell = |column: &String| {
            row.iter().find(|(name, _)| name == column).map_or(String::new(), |(_, text)| text.clone())
        };
        table.row(columns.iter().map(cell));
    }
    Some(table.of(items.len()))
}

/// The single values of an object, and of the objects in it.
fn cells(item: &Value) -> Vec<(String, String)> {
    let Value::Object(map) = item else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in map {
        let name = name.replace('_', " ");
        match value {
            Value::Object(inner) => {
                let single = inner.iter().filter(|(_, value)| !value.is_object() && !is_long(value));
                found.extend(single.map(|(part, value)| (format!("{name}: {}", part.replace('_', " ")), shown(value))));
            }
            value if is_long(value) => {}
            value => found.push((name, shown(value))),
        }
    }
    found
}

fn is_long(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|items| items.len() > 4 || items.iter().any(|item| item.is_object() || item.is_array()))
}

/// How the result was made.
fn record(run: &Run) -> Vec<(String, String)> {
    let written = &run.written;
    let mut facts = vec![
        ("made by".to_owned(), format!("Mercer {}", written.mercer)),
        ("instructions".to_owned(), written.instructions.clone()),
    ];
    if let Some(seconds) = written.measurements["seconds"].as_f64() {
        facts.push(("time".to_owned(), duration(seconds)));
    }
    if let Some(peak) = written.measurements["peak_bytes"].as_u64() {
        // Like the time, it depends on the machine and the moment.
        let more = written.measurements["promise_broken"] == true;
        let more = if more { ", more than was promised" } else { "" };
        facts.push(("peak memory".to_owned(), format!("{}{more}", bytes(peak as usize))));
    }
    let inputs = written
        .inputs
        .iter()
        .map(|input| (format!("input {}", input.setting), format!("{} ({})", input.place, input.fingerprint)));
    facts.extend(inputs.take(40));
    let output = |output: &Value| (format!("output {}", shown(&output["name"])), shown(&output["digest"]));
    facts.extend(written.outputs.iter().take(40).map(output));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_right() {
        let pairs = [
            (0.0, "0"),
            (0.123456789, "0.12346"),
            (-1234.5678, "-1234.6"),
            (1e-7, "1.000e-7"),
            (3.0, "3"),
            (99999.9, "100000"),
            (2.5e9, "2.500e9"),
        ];
        pairs.into_iter().for_each(|(x, text)| assert_eq!(short(x), text));
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!((quoted("a/b-1"), quoted("a b's")), ("a/b-1".to_owned(), "'a b'\\''s'".to_owned()));
    }
}
