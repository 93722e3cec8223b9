//! The command line speaks one language: a flag means the same in every command.

use crate::arguments::command;
use clap::{Arg, Command};
use std::collections::{BTreeMap, BTreeSet};

/// The terminal width that help is written for, and the lines on one screen.
const COLUMNS: usize = 120;
const LINES: usize = 50;

/// Required flags: every command at or below these paths must have them.
const PLACES: &[(&[&str], &[&str])] = &[
    (&["json", "threads", "memory", "quiet", "verbose", "help"], &[""]),
    (
        &["out", "force"],
        &[
            "train",
            "predict",
            "kernel",
            "eigen",
            "fit",
            "uncertainty",
            "explain",
            "audit",
            "probe",
            "compare",
            "shift",
            "report",
            "demo",
        ],
    ),
    (&["samples", "title"], &["report"]),
    (&["open"], &["report", "demo"]),
    (&["data", "labels", "classes", "scale", "mean", "std", "layout"], &DATA),
    (&["test", "test-labels"], &["train", "eigen", "uncertainty", "explain", "probe", "compare", "shift"]),
    (
        &["validation", "validation-labels", "ood", "conformal", "noise-std", "draw-scale", "draws", "weight-decay"],
        &["uncertainty"],
    ),
    (
        &["net", "weights", "include", "exclude", "unmerge"],
        &["predict", "uncertainty", "explain", "audit", "probe", "spectrum", "compare", "shift"],
    ),
    (&["kernel", "penalty", "penalty-norm", "folds", "neighbours", "ids"], &["explain", "audit"]),
    (&["machine", "to", "groups", "class", "top", "rows", "all", "layers", "ood"], &["explain"]),
    (&["validate", "subsets", "fraction", "repeats"], &["explain"]),
    (&["wrong", "poisoned", "test", "test-poisoned", "threshold", "near", "cut", "fail-above"], &["audit"]),
    (&["net", "arch", "kernel", "weights", "include", "exclude", "unmerge"], &KERNELS),
    (&["weights", "include", "exclude", "unmerge"], &["info"]),
    (
        &["import-limit"],
        &["train", "predict", "info", "uncertainty", "explain", "audit", "probe", "spectrum", "compare", "shift"],
    ),
    (&["import-limit"], &KERNELS),
    (&["arch"], &["train"]),
    (&["node"], &["predict", "uncertainty", "explain", "audit", "probe", "shift"]),
    (&["layer", "kernel"], &["probe", "spectrum", "shift"]),
    (&["direction", "leading", "products"], &["spectrum"]),
    (&["kernel", "arch", "widths", "seeds", "ridge", "checkpoint-at", "optimiser"], &["compare"]),
    (&["neighbours", "svm-cost", "untrained", "compared", "permutations", "other-net"], &["probe"]),
    (&["permutations", "level", "fail-below", "keep-above", "reduce-to", "landmarks"], &["shift"]),
    (&["from"], &["predict", "uncertainty", "explain", "shift"]),
    (&["chunk"], &["predict"]),
    (&["against", "as-features", "by-layer"], &["kernel"]),
    (&["gram"], &["fit", "eigen exact", "eigen lanczos", "eigen randomised"]),
    (&["gram"], &["eigen spin", "eigen neuralef", "eigen shared"]),
    (&["features"], &["fit"]),
    (&["components"], &["eigen", "uncertainty"]),
    (&["landmarks"], &["eigen nystrom", "uncertainty"]),
    (&["landmark-choice"], &["eigen nystrom"]),
    (&["frequencies"], &["eigen rff"]),
    (&["view-noise"], &["eigen contrastive"]),
    (&["batch", "learning-rate"], &LEARNING),
    (&["resume"], &LEARNING),
    (&["resume"], &["kernel"]),
    (
        &["seed"],
        &[
            "train",
            "kernel",
            "eigen",
            "fit",
            "uncertainty",
            "explain",
            "audit",
            "probe",
            "spectrum",
            "compare",
            "shift",
            "demo",
        ],
    ),
    (
        &["precision", "dry-run"],
        &[
            "train",
            "predict",
            "kernel",
            "eigen",
            "uncertainty",
            "explain",
            "audit",
            "probe",
            "spectrum",
            "compare",
            "shift",
        ],
    ),
];

const DATA: [&str; 12] = [
    "train",
    "predict",
    "kernel",
    "eigen",
    "fit",
    "uncertainty",
    "explain",
    "audit",
    "probe",
    "spectrum",
    "compare",
    "shift",
];

const LEARNING: [&str; 5] = ["train", "eigen spin", "eigen neuralef", "eigen shared", "eigen contrastive"];

/// Commands that take a kernel.
const KERNELS: [&str; 10] = [
    "kernel",
    "fit",
    "eigen exact",
    "eigen lanczos",
    "eigen randomised",
    "eigen nystrom",
    "eigen rff",
    "eigen spin",
    "eigen neuralef",
    "eigen shared",
];

/// Retired flag names, which no command may use.
const GONE: [&str; 13] = [
    "output",
    "eval",
    "eval-data",
    "eval-labels",
    "load",
    "n-landmarks",
    "n-features",
    "train",
    "train-labels",
    "logits",
    "noise",
    "noise-scale",
    "at",
];

/// All commands with their paths, such as `eigen nystrom`; the first is `mercer` itself, with an empty path.
fn commands() -> Vec<(String, Command)> {
    fn walk(path: &str, command: &Command, found: &mut Vec<(String, Command)>) {
        found.push((path.to_owned(), command.clone()));
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            walk(format!("{path} {}", below.get_name()).trim(), below, found);
        }
    }
    let mut whole = command().term_width(COLUMNS);
    whole.build();
    let mut found = Vec::new();
    walk("", &whole, &mut found);
    found
}

/// The commands without subcommands.
fn leaves() -> Vec<(String, Command)> {
    commands().into_iter().filter(|(_, command)| !command.has_subcommands()).collect()
}

/// The help text without its default, which may differ between commands.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    help.split("[default").next().unwrap_or_default().trim().to_owned()
}

fn value_name(arg: &Arg) -> String {
    match arg.get_action().takes_values() {
        true => arg.get_value_names().unwrap_or_default().join(" "),
        false => String::new(),
    }
}

/// Fails with a list of all violations.
fn nothing_of(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_flag_has_one_meaning_and_one_value_name() {
    let mut flags: BTreeMap<String, BTreeMap<(String, String), Vec<String>>> = BTreeMap::new();
    for (path, command) in commands() {
        for arg in command.get_arguments() {
            let Some(long) = arg.get_long() else { continue };
            let places = flags.entry(long.to_owned()).or_default();
            places.entry((value_name(arg), meaning(arg))).or_default().push(path.clone());
        }
    }
    let several = flags.into_iter().filter(|(_, meanings)| meanings.len() > 1);
    nothing_of(several.map(|(long, meanings)| format!("--{long} is several things: {meanings:#?}")).collect());
}

#[test]
fn a_letter_belongs_to_one_flag() {
    let mut letters: BTreeMap<char, BTreeSet<String>> = BTreeMap::new();
    for (_, command) in commands() {
        for arg in command.get_arguments() {
            if let Some(short) = arg.get_short() {
                letters.entry(short).or_default().insert(arg.get_long().unwrap_or_default().to_owned());
            }
        }
    }
    let wrong = letters.into_iter().filter(|(_, longs)| longs.len() != 1 || longs.contains(""));
    nothing_of(wrong.map(|(short, longs)| format!("-{short} is short for {longs:?}")).collect());
}

#[test]
fn everything_is_explained() {
    let mut wrong = Vec::new();
    for (path, command) in commands() {
        if command.get_about().is_none() {
            wrong.push(format!("`{path}` says nothing of itself"));
        }
        for arg in command.get_arguments().filter(|arg| meaning(arg).is_empty()) {
            wrong.push(format!("{} of `{path}` has no help", arg.get_id()));
        }
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if !examples.contains("Examples:\n  mercer ") {
            wrong.push(format!("`{path}` has no examples"));
        }
    }
    nothing_of(wrong);
}

#[test]
fn help_fits_on_the_screen() {
    let mut wrong = Vec::new();
    for (path, mut command) in commands() {
        let rendered = [command.render_help().to_string(), command.render_long_help().to_string()];
        // clap wraps most help to the terminal; text written line by line must be narrow enough itself.
        let written = [command.get_after_help(), command.get_after_long_help()];
        let written = written.into_iter().flatten().map(ToString::to_string);
        for text in rendered.into_iter().chain(written) {
            let wide = text.lines().filter(|line| line.chars().count() > COLUMNS);
            wrong.extend(wide.map(|line| format!("`{path}`: {line}")));
        }
    }
    nothing_of(wrong);
}

/// A method has few enough settings to read at a glance, one line each.
#[test]
fn a_method_is_explained_on_one_screen() {
    let found = commands().into_iter().find(|(path, _)| path == "eigen nystrom");
    let (_, mut nystrom) = found.expect("there is Nyström's method");
    let help = nystrom.render_help().to_string();
    assert!(help.lines().count() <= LINES, "{} lines:\n{help}", help.lines().count());
    let wrapped = help.lines().filter(|line| line.starts_with("          "));
    assert_eq!(wrapped.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn flags_are_where_the_grammar_says() {
    let leaves = leaves();
    let mut wrong = Vec::new();
    for (longs, places) in PLACES {
        for place in *places {
            let below = |path: &str| path == *place || place.is_empty() || path.starts_with(&format!("{place} "));
            let found: Vec<_> = leaves.iter().filter(|(path, _)| below(path)).collect();
            if found.is_empty() {
                wrong.push(format!("there is no `{place}`"));
            }
            for (path, command) in found {
                let has = |long: &str| command.get_arguments().any(|arg| arg.get_long() == Some(long));
                wrong.extend(longs.iter().filter(|long| !has(long)).map(|long| format!("`{path}` has no --{long}")));
            }
        }
    }
    for (path, command) in &leaves {
        let gone = command.get_arguments().filter_map(Arg::get_long).filter(|long| GONE.contains(long));
        wrong.extend(gone.map(|long| format!("`{path}` has --{long}")));
    }
    nothing_of(wrong);
}

/// The first page lists every command, once.
#[test]
fn every_command_is_in_a_group() {
    let mut listed: Vec<&str> = crate::commands::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let command = command();
    let mut names: Vec<&str> = command.get_subcommands().map(Command::get_name).chain(["help"]).collect();
    listed.sort_unstable();
    names.sort_unstable();
    assert_eq!(listed, names);
}
