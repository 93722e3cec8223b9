//! Texts as tokens, against the Python package `tokenizers`; tables with texts in them; tokenizers that are broken.

use crate::{fails, file, fixture};
use mercer_data::{Classes, DataError, Role, Source, TextColumn, TokenPart, Tokenizer, Used, open_labels, open_text};
use mercer_run::Context;
use proptest::prelude::*;
use serde_json::Value;

fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::open(&fixture(name)).unwrap()
}

/// The texts of the fixture, and their tokens.
fn expected(name: &str, kind: &str) -> (Vec<String>, Vec<Vec<u32>>) {
    let read: Value = serde_json::from_str(&std::fs::read_to_string(fixture("tokens.json")).unwrap()).unwrap();
    let texts = serde_json::from_value(read["texts"].clone()).unwrap();
    (texts, serde_json::from_value(read[name][kind].clone()).unwrap())
}

fn quoted(texts: &[String]) -> String {
    let row = |text: &String| format!("\"{}\",1\n", text.replace('"', "\"\""));
    format!("text,label\n{}", texts.iter().map(row).collect::<String>())
}

fn column(bytes: &[u8], name: &str, key: Option<&str>) -> mercer_data::Result<(tempfile::TempDir, TextColumn)> {
    let (folder, path) = file(name, bytes);
    open_text(&Source::new(path, key), &[], None).map(|column| (folder, column))
}

#[test]
fn tokens_are_those_of_the_python_package() {
    for name in ["wordpiece", "bpe"] {
        let tokenizer = tokenizer(&format!("{name}.json"));
        for (kind, length) in [("whole", None), ("cut", Some(6))] {
            let (texts, tokens) = expected(name, kind);
            if length.is_none() {
                for (text, tokens) in texts.iter().zip(&tokens) {
                    assert_eq!(tokenizer.encode(text).unwrap(), *tokens, "{name}: {text}");
                }
            }
            let (_folder, column) = column(quoted(&texts).as_bytes(), "t.csv", Some("text")).unwrap();
            let found = column.tokenise(&tokenizer, length, &Context::new()).unwrap();
            let (_, whole) = expected(name, "whole");
            assert_eq!(found.n_cut, whole.iter().zip(&tokens).filter(|(whole, own)| whole != own).count());
            let width = tokens.iter().map(Vec::len).max().unwrap() + 2;
            let ids = found.padded(TokenPart::Ids, width, &tokenizer).unwrap().read::<f64>().unwrap();
            let mask = found.padded(TokenPart::Mask, width, &tokenizer).unwrap().read::<f64>().unwrap();
            let types = found.padded(TokenPart::Types, width, &tokenizer).unwrap().read::<f64>().unwrap();
            assert_eq!(ids.shape(), [texts.len(), width]);
            for (row, tokens) in tokens.iter().enumerate() {
                for at in 0..width {
                    let token = tokens.get(at).copied();
                    assert_eq!(ids[[row, at]], f64::from(token.unwrap_or(0)), "{name}: row {row}, token {at}");
                    assert_eq!((mask[[row, at]], types[[row, at]]), (f64::from(u8::from(token.is_some())), 0.0));
                }
            }
            assert!(found.padded(TokenPart::Ids, found.longest - 1, &tokenizer).is_err());
        }
    }
    assert!(tokenizer("wordpiece.json").has_padding() && !tokenizer("bpe.json").has_padding());
}

#[test]
fn padding_on_the_left_is_kept() {
    let json = std::fs::read_to_string(fixture("wordpiece.json")).unwrap();
    assert!(json.contains(r#""direction":"Right","pad_to"#));
    let left = json.replace(r#""direction":"Right","pad_to"#, r#""direction":"Left","pad_to"#);
    let tokenizer = Tokenizer::from_json("left.json", left).unwrap();
    let (_folder, column) = column(b"text\ncat\n", "t.csv", None).unwrap();
    let found = column.tokenise(&tokenizer, None, &Context::new()).unwrap();
    let mask = found.padded(TokenPart::Mask, 5, &tokenizer).unwrap().read::<f32>().unwrap();
    assert_eq!(mask.as_slice().unwrap(), [0.0, 0.0, 1.0, 1.0, 1.0]);
}

#[test]
fn labels_and_ids_are_other_columns_of_the_table() {
    let table = "id,text,mood\n1,\"the cat, sat\",good\n2,\"a \"\"dog\"\"\nand a cat\",bad\n3,#mat the,good\n";
    let tabbed = "id\ttext\tmood\n1\tthe cat, sat\tgood\n2\ta \"dog and a cat\tbad\n3\t#mat the\tgood\n";
    for (name, table) in [("t.csv", table), ("t.tsv", tabbed)] {
        let (_folder, path) = file(name, table.as_bytes());
        let used = |key: &str, role: Role| Used { role, source: Source::new(&path, Some(key)) };
        let source = Source::new(&path, None);
        let used = [used("mood", Role::Label), used("id", Role::Id)];
        // The only column that is left.
        let column = open_text(&source, &used, None).unwrap();
        assert_eq!(
            (&column.columns.inputs[..], &column.columns.used[..]),
            (&["text".into()][..], &["mood".into(), "id".into()][..])
        );
        let tokens = column.tokenise(&tokenizer("bpe.json"), None, &Context::new()).unwrap();
        assert_eq!(tokens.n_samples(), 3, "{name}");
        let ids = tokens.padded(TokenPart::Ids, 40, &tokenizer("bpe.json")).unwrap();
        let labels = Classes::read(&open_labels(&used[0].source, &ids).unwrap()).unwrap();
        assert_eq!((labels.names(), labels.indices()), (&["bad".to_owned(), "good".into()][..], &[1, 0, 1][..]));
        fails(open_text(&source, &used[..1], None), &["say which column is the text", "`id`, `text`"]);
        let named = Source::new(&path, Some("mood"));
        fails(open_text(&named, &used, None), &["mood", "label"]);
        // A later table is matched by name, unless the user names a column.
        let later = open_text(&source, &[], Some(&column.columns)).unwrap();
        assert_eq!(later.columns.inputs, ["text"]);
    }
}

/// The padding token may have a larger number than every token of the texts.
#[test]
fn padding_keeps_its_number() {
    let mut json: Value = serde_json::from_str(&std::fs::read_to_string(fixture("wordpiece.json")).unwrap()).unwrap();
    json["model"]["vocab"]["[PAD]"] = 151_643.into();
    json["added_tokens"][0]["id"] = 151_643.into();
    json["padding"]["pad_id"] = 151_643.into();
    let (_own, path) = file("large.json", json.to_string().as_bytes());
    let tokenizer = Tokenizer::open(&path).unwrap();
    let (_folder, column) = column(b"text,y\na cat,1\n", "t.csv", Some("text")).unwrap();
    let found = column.tokenise(&tokenizer, None, &Context::new()).unwrap();
    let ids = found.padded(TokenPart::Ids, found.longest + 1, &tokenizer).unwrap().read::<f64>().unwrap();
    assert_eq!(ids[[0, found.longest]], 151_643.0);
}

#[test]
fn bad_cells_are_named() {
    let tokenise = |bytes: &[u8], name: &str| {
        let (_folder, column) = column(bytes, name, Some("text"))?;
        column.tokenise(&tokenizer("wordpiece.json"), None, &Context::new()).map(|_| ())
    };
    fails(tokenise(b"text,y\na cat,1\n,2\n", "t.csv"), &["line 3", "column 1 (text)", "is empty"]);
    fails(tokenise(b"text,y\na cat,1\ncaf\xe9,2\n", "t.csv"), &["line 3", "byte 4 is 0xE9", "UTF-8"]);
    fails(tokenise(b"\xff\xfet\0e\0x\0t\0", "t.csv"), &["UTF-16"]);
    fails(tokenise(b"words,y\na cat,1\n", "t.csv"), &["no `text`", "`words`, `y`"]);
    fails(tokenise(b"text,y\n\"a cat,1\n", "t.csv"), &["quote opened in line 2 is never closed"]);
    // Lines that a mark inside a cell would join are not lost.
    fails(tokenise(b"text,y\na 5\" cat,1\na 3\" cat,2\n", "t.csv"), &["line 2", "quotation mark inside a cell"]);
    let long = format!("text,y\n{},1\n", "a".repeat((1 << 20) + 1));
    fails(tokenise(long.as_bytes(), "t.csv"), &["line 2", "longer than 1 MiB"]);
    fails(open_text(&Source::new(fixture("u1.npy"), None), &[], None), &["u1.npy", "CSV or TSV", "npy"]);
    let (_folder, few) = column(b"text\na cat\n", "t.csv", None).unwrap();
    let found = few.tokenise(&tokenizer("wordpiece.json"), Some(2), &Context::new());
    fails(found, &["max-tokens", "2 of them are special"]);
    let stopped = Context::new();
    stopped.cancel();
    let cancelled = few.tokenise(&tokenizer("wordpiece.json"), None, &stopped);
    assert!(matches!(cancelled, Err(DataError::Cancelled { .. })));
}

#[test]
fn broken_tokenizers_are_refused() {
    let read = |json: &str| Tokenizer::from_json("t.json", json.to_owned()).map(|_| ());
    fails(read("{}"), &["t.json", "tokenizer"]);
    fails(read("not json"), &["t.json", "tokenizer"]);
    fails(read(r#"{"version":"1.0","model":{"type":"WordPiece"}}"#), &["t.json", "tokenizer"]);
    fails(Tokenizer::open(&fixture("absent.json")), &["absent.json"]);
    let (_folder, path) = file("large.json", b"");
    std::fs::File::options().write(true).open(&path).unwrap().set_len((64 << 20) + 1).unwrap();
    fails(Tokenizer::open(&path), &["large.json", "at most 67108864"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// A damaged tokenizer is refused, or works; it does not bring the program down.
    #[test]
    fn flipped_bytes_of_a_tokenizer(name in prop::sample::select(vec!["wordpiece.json", "bpe.json"]), at in 0_usize..4000, bit in 0_u32..8) {
        let mut bytes = std::fs::read(fixture(name)).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        if let Ok(json) = String::from_utf8(bytes)
            && let Ok(tokenizer) = Tokenizer::from_json("flipped.json", json)
        {
            let _ = tokenizer.encode("the cat, a dog: naïve 😀");
        }
    }
}
