//! The commands of the README that are marked as runnable print what the README says.
//!
//! They run one after the other in a folder that has nothing but the tour's results. Seconds, rates and memory are not
//! compared. Other numbers may differ by a tenth, because sums have another order on machines with other vectors.

use crate::folder::{Folder, Run};
use std::path::Path;
use std::process::Command;

const MARK: &str = "<!-- run -->";

/// A command, and what it prints.
struct Example {
    command: String,
    printed: Vec<String>,
}

/// The marked examples of a page.
fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for block in page.split(MARK).skip(1) {
        let lines = block.trim_start().lines();
        let inside = lines.skip(1).take_while(|line| *line != "```");
        for line in inside {
            match (line.strip_prefix("$ "), examples.last_mut()) {
                (Some(command), _) => examples.push(Example { command: command.to_owned(), printed: Vec::new() }),
                (None, Some(example)) => example.printed.push(line.to_owned()),
                (None, None) => panic!("{line}: no command before it"),
            }
        }
    }
    examples
}

/// A piece of a line.
#[derive(Debug, PartialEq)]
enum Piece {
    Word(String),
    Number(f64),
    /// A number that is different in every run.
    Measured,
}

/// Units of what is different in every run.
const MEASURED: [&str; 6] = ["s", "per", "GF/s", "MiB", "KiB", "GiB"];

fn pieces(line: &str) -> Vec<Piece> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut pieces = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let digits: String = word.chars().filter(|next| !matches!(next, ',' | '(' | ')' | '[' | ']')).collect();
        let next = words.get(at + 1).map(|next| next.trim_matches(|letter| matches!(letter, ',' | '(' | ')' | ';')));
        match digits.parse::<f64>() {
            Ok(_) if next.is_some_and(|unit| MEASURED.contains(&unit)) => pieces.push(Piece::Measured),
            Ok(number) => pieces.push(Piece::Number(number)),
            Err(_) => pieces.push(Piece::Word((*word).to_owned())),
        }
    }
    pieces
}

fn alike(expected: &str, found: &str) -> bool {
    let (expected, found) = (pieces(expected), pieces(found));
    let close = |(expected, found): (&Piece, &Piece)| match (expected, found) {
        (Piece::Number(expected), Piece::Number(found)) => (expected - found).abs() <= 0.1 * expected.abs().max(0.05),
        (expected, found) => expected == found,
    };
    expected.len() == found.len() && expected.iter().zip(&found).all(close)
}

/// Whether lines are as expected; `…` stands for any lines.
fn matches(expected: &[String], found: &[&str]) -> bool {
    match (expected.split_first(), found.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => (0..=found.len()).any(|from| matches(rest, &found[from..])),
        (Some((first, rest)), Some((line, others))) => alike(first, line) && matches(rest, others),
        _ => false,
    }
}

#[test]
fn commands_print_what_the_readme_says() {
    let folder = Folder::with(&[]);
    folder.demo(&["--quiet"]);
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let examples = examples(&readme);
    assert!(examples.len() >= 10, "{} commands are marked", examples.len());
    let binary = Path::new(env!("CARGO_BIN_EXE_mercer")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    for Example { command, mut printed } in examples {
        while printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .env("PATH", format!("{}:{path}", binary.display()))
            .current_dir(folder.path(""))
            .output()
            .expect("sh runs");
        let run = Run::new(&command, output);
        let found: Vec<&str> = run.out.trim_end().lines().collect();
        assert!(matches(&printed, &found), "$ {command}\nexpected:\n{}\nfound:\n{}", printed.join("\n"), run.out);
    }
}

#[test]
fn lines_are_compared_by_words_and_numbers() {
    assert!(alike("355 samples in 0.01 s (62,551 per second)", "355 samples in 2.5 s (1 per second)"));
    assert!(alike("accuracy 98.31 %", "accuracy 97.9 %"));
    assert!(!alike("accuracy 98.31 %", "accuracy 58.31 %"));
    assert!(!alike("accuracy 98.31 %", "precision 98.31 %"));
    let expected = ["a", "…", "d 1"].map(str::to_owned);
    assert!(matches(&expected, &["a", "b", "c", "d 1"]) && matches(&expected, &["a", "d 1"]));
    assert!(!matches(&expected, &["a", "b"]) && !matches(&expected, &["a", "d 2"]));
}
