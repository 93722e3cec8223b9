//! Which columns are inputs.

use std::path::Path;

use mercer_data::{Columns, OpenInputs, Result, Role, Source, Used, open_inputs, open_labelled};

use crate::{fails, file, fixture};

const TABLE: &[u8] = b"a,target,b,id\n1,0.5,2,7\n3,0.25,4,8\n";

fn label(path: impl AsRef<Path>, key: Option<&str>) -> Used {
    Used { role: Role::Label, source: Source::new(path.as_ref(), key) }
}

fn opened(path: &Path, key: Option<&str>, used: &[Used], like: &[Option<Columns>]) -> Result<OpenInputs> {
    open_inputs(&[Source::new(path, key)], used, like)
}

fn numbers(inputs: &OpenInputs) -> Vec<f64> {
    inputs.sets[0].read().unwrap().into_iter().collect()
}

#[test]
fn a_label_is_no_input() {
    let (folder, path) = file("t.csv", TABLE);
    let inputs = opened(&path, None, &[label(&path, Some("target"))], &[]).unwrap();
    assert_eq!(inputs.sets[0].columns(), ["a", "b", "id"]);
    assert_eq!(inputs.notes.len(), 1);
    assert!(inputs.notes[0].contains("`target` is used as label, so it is not an input"), "{:?}", inputs.notes);
    let id = Used { role: Role::Id, source: Source::new(&path, Some("id")) };
    let inputs = opened(&path, None, &[label(&path, Some("target")), id], &[]).unwrap();
    assert_eq!(numbers(&inputs), [1.0, 2.0, 3.0, 4.0]);
    assert!(inputs.notes[1].contains("used as id"));
    // Several columns, a column by its number, and data that say what to leave out.
    for (data, labels) in [(None, "target,id"), (None, "1,3"), (Some("-id"), "target"), (None, "-a,b")] {
        let inputs = opened(&path, data, &[label(&path, Some(labels))], &[]).unwrap();
        assert_eq!(numbers(&inputs), [1.0, 2.0, 3.0, 4.0], "{data:?} {labels}");
    }
    // What the user has chosen without it is left alone, and nothing needs to be said.
    let inputs = opened(&path, Some("a,b"), &[label(&path, Some("target"))], &[]).unwrap();
    assert!(inputs.notes.is_empty());
    drop(folder);
}

#[test]
fn however_the_path_is_written() {
    let (folder, path) = file("t.csv", TABLE);
    let name = folder.path().file_name().unwrap();
    let mut spellings = vec![folder.path().join("./t.csv"), folder.path().join("..").join(name).join("t.csv")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, folder.path().join("link.csv")).unwrap();
        spellings.push(folder.path().join("link.csv"));
    }
    std::fs::hard_link(&path, folder.path().join("hard.csv")).unwrap();
    std::fs::copy(&path, folder.path().join("copy.csv")).unwrap();
    spellings.extend([folder.path().join("hard.csv"), folder.path().join("copy.csv")]);
    for other in spellings {
        let inputs = opened(&path, None, &[label(&other, Some("target"))], &[]).unwrap();
        assert_eq!(inputs.sets[0].columns(), ["a", "b", "id"], "{}", other.display());
    }
    // Another table's column of the same name is another column.
    std::fs::write(folder.path().join("other.csv"), "a,target\n9,0\n9,1\n").unwrap();
    let inputs = opened(&path, None, &[label(folder.path().join("other.csv"), Some("a"))], &[]).unwrap();
    assert_eq!(inputs.sets[0].columns(), ["a", "target", "b", "id"]);
    assert!(inputs.notes.is_empty());
}

#[test]
fn an_input_that_is_asked_for_is_refused() {
    let (_folder, path) = file("t.csv", TABLE);
    for key in ["target", "a,target", "0,1"] {
        let result = opened(&path, Some(key), &[label(&path, Some("target"))], &[]);
        fails(result, &["`target` is used as label", "leave it out of the list"]);
    }
    fails(opened(&path, None, &[label(&path, None)], &[]), &["no column is left"]);
    fails(opened(&path, None, &[label(&path, Some("colour"))], &[]), &["no `colour`"]);
}

#[test]
fn arrays_have_no_columns() {
    let used = label(fixture("stored.npz"), Some("y"));
    let inputs = opened(&fixture("stored.npz"), Some("x"), &[used], &[]).unwrap();
    assert_eq!((inputs.sets[0].shape(), &inputs.columns[..]), (&[4, 3, 2][..], &[None][..]));
    assert!(inputs.notes.is_empty());
}

#[test]
fn text_labels_do_not_stop_the_data() {
    let (_folder, path) = file("iris.csv", b"length,species,width\n5.1,setosa,3.5\n7.0,virginica,3.2\n");
    let (data, labels) = open_labelled(&Source::new(&path, None), &Source::new(&path, Some("species"))).unwrap();
    assert_eq!((data.columns(), labels.n_outputs()), (&["length".to_owned(), "width".to_owned()][..], 2));
}

/// The columns of a training set, and files that are read like it.
#[test]
fn names_are_matched() {
    let (folder, path) = file("t.csv", TABLE);
    let used = [label(&path, Some("target"))];
    let like = opened(&path, Some("-id"), &used, &[]).unwrap().columns;
    let columns = like[0].clone().unwrap();
    assert_eq!(
        (columns.inputs, columns.used, columns.named),
        (vec!["a".to_owned(), "b".to_owned()], vec!["target".to_owned()], true,)
    );
    let other = folder.path().join("other.csv");
    let read = |text: &str, key: Option<&str>| {
        std::fs::write(&other, text).unwrap();
        opened(&other, key, &[], &like)
    };
    // Permuted, with and without the column that was the label, and with a choice of columns.
    for (text, key) in [
        ("b,a\n2,1\n4,3\n", None),
        ("target,b,a\n9,2,1\n9,4,3\n", None),
        ("b,target,a,c\n2,x,1,7\n4,y,3,7\n", Some("-c")),
        ("c,b,a\n7,2,1\n7,4,3\n", Some("a,b")),
        ("c,b,a\n7,2,1\n7,4,3\n", Some("b,a")),
        ("1,2\n3,4\n", None),
    ] {
        assert_eq!(numbers(&read(text, key).unwrap()), [1.0, 2.0, 3.0, 4.0], "{text} {key:?}");
    }
    let note = |text: &str| read(text, None).unwrap().notes;
    assert!(note("b,target,a\n2,9,1\n")[0].contains("`target` was a label, id or group before"));
    assert!(note("1,2\n")[0].contains("matched by position"));
    assert!(note("b,a\n2,1\n").is_empty());
    assert!(note("b,target,a\n2,9,1\n")[0].ends_with("so it is not an input"));
    fails(read("a,c\n1,2\n", None), &["other.csv", "it lacks `b`", "unknown columns: `c`", "`a`, `b`"]);
    fails(read("a,b,id\n1,2,3\n", None), &["unknown columns: `id`"]);
    fails(read("a,b,target\n1,2,3\n", Some("a,b,target")), &["unknown columns: `target`"]);
    fails(read("1,2,3\n", None), &["it has 3 columns, but needs 2"]);
}

/// Labels that were never among the inputs are known as labels all the same.
#[test]
fn labels_are_known_wherever_they_were() {
    let (folder, path) = file("t.csv", TABLE);
    let labels = folder.path().join("labels.csv");
    std::fs::write(&labels, "n,target\n1,7\n2,8\n").unwrap();
    std::fs::write(folder.path().join("x.csv"), "a,b\n1,2\n3,4\n").unwrap();
    for (data, key, used) in [
        (&path, Some("a,b"), label(&path, Some("target"))),
        (&folder.path().join("x.csv"), None, label(&labels, Some("target"))),
    ] {
        let like = opened(data, key, &[used], &[]).unwrap();
        assert_eq!(like.columns[0].as_ref().unwrap().used, ["target"]);
        assert!(like.notes.is_empty(), "{:?}", like.notes);
        let again = opened(&path, Some("-id"), &[], &like.columns).unwrap();
        assert_eq!(numbers(&again), [1.0, 2.0, 3.0, 4.0]);
    }
}

/// Time grows with the number of columns, not with its square.
#[test]
fn many_columns_are_matched() {
    let n = 20_000;
    let names: Vec<String> = (0..n).map(|at| format!("x{at}")).collect();
    let line = |cells: &mut dyn Iterator<Item = String>| cells.collect::<Vec<_>>().join(",") + "\n";
    let text = line(&mut names.iter().cloned()) + &line(&mut (0..n).map(|at| at.to_string()));
    let (folder, path) = file("wide.csv", text.as_bytes());
    let reversed = line(&mut names.iter().rev().cloned()) + &line(&mut (0..n).rev().map(|at| at.to_string()));
    let other = folder.path().join("reversed.csv");
    std::fs::write(&other, reversed).unwrap();
    let used = [label(&path, Some("-x0,x1"))];
    let like = opened(&path, None, &[], &[]).unwrap();
    assert_eq!(numbers(&opened(&other, None, &[], &like.columns).unwrap())[..3], [0.0, 1.0, 2.0]);
    let two = opened(&path, None, &used, &[]).unwrap();
    assert_eq!(numbers(&opened(&other, None, &[], &two.columns).unwrap()), [0.0, 1.0]);
}

#[test]
fn one_column_keeps_its_axes() {
    let (folder, path) = file("t.csv", b"x,y\n1,2\n3,4\n");
    let used = [label(&path, Some("y"))];
    let like = opened(&path, None, &used, &[]).unwrap();
    assert_eq!(like.sets[0].shape(), [2, 1]);
    assert_eq!(opened(&path, Some("x"), &[], &like.columns).unwrap().sets[0].shape(), [2, 1]);
    let alone = opened(&path, Some("x"), &used, &[]).unwrap();
    assert_eq!(alone.sets[0].shape(), [2]);
    assert_eq!(opened(&path, None, &used, &alone.columns).unwrap().sets[0].shape(), [2]);
    drop(folder);
}

#[test]
fn without_a_header_order_is_all_there_is() {
    let (folder, path) = file("t.csv", b"0,1,2\n1,3,4\n");
    let like = opened(&path, None, &[label(&path, Some("0"))], &[]).unwrap();
    assert_eq!(numbers(&like), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(numbers(&opened(&path, None, &[], &like.columns).unwrap()), [1.0, 2.0, 3.0, 4.0]);
    let short = folder.path().join("short.csv");
    std::fs::write(&short, "1,2\n3,4\n").unwrap();
    assert_eq!(numbers(&opened(&short, None, &[], &like.columns).unwrap()), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn every_input_needs_every_sample() {
    let (folder, path) = file("t.csv", TABLE);
    std::fs::write(folder.path().join("u.csv"), "a\n1\n").unwrap();
    let sources = [Source::new(&path, None), Source::new(folder.path().join("u.csv"), None)];
    fails(open_inputs(&sources, &[], &[]), &["2 samples", "u.csv has 1"]);
}
