use mercer_data::{ClassOrder, Classes, Dataset, Labels, Source, open_labelled, parse_classes};
use ndarray::{Array, Dimension, array};

use crate::{fails, file, fixture, open};

fn dataset<T: mercer_data::Storable, D: Dimension>(array: Array<T, D>) -> Dataset {
    Dataset::from_array("labels", array.into_dyn().view()).unwrap()
}

#[test]
fn small_whole_numbers_are_their_own_class() {
    for labels in [dataset(array![0_u8, 3, 1]), dataset(array![0.0, 3.0, 1.0]), dataset(array![[0_i64], [3], [1]])] {
        let Labels::Classes(classes) = Labels::read(&labels).unwrap() else { panic!("classes expected") };
        assert_eq!((classes.indices(), classes.n_classes()), (&[0, 3, 1][..], 4));
        assert_eq!(classes.counts(), [1, 1, 0, 1]);
    }
}

#[test]
fn other_whole_numbers_are_sorted() {
    let classes = Classes::read(&dataset(array![-1_i64, 100_000, -1])).unwrap();
    assert_eq!((classes.indices(), classes.names()), (&[0, 1, 0][..], &["-1".to_owned(), "100000".to_owned()][..]));
}

#[test]
fn texts_are_sorted() {
    let (_folder, path) = file("pets.csv", b"x,pet\n1,dog\n2,cat\n3,dog\n");
    let classes = Classes::read(&open(&path, Some("pet")).unwrap()).unwrap();
    assert_eq!((classes.indices(), classes.names()), (&[1, 0, 1][..], &["cat".to_owned(), "dog".to_owned()][..]));
}

#[test]
fn anything_else_is_a_target() {
    let labels = Labels::read(&dataset(array![0.5, 2.0])).unwrap();
    assert_eq!(labels, Labels::Targets(array![[0.5], [2.0]]));
    assert_eq!(Labels::read(&dataset(array![[1_i64, 2], [3, 4]])).unwrap().n_outputs(), 2);
    assert_eq!(Labels::targets(&dataset(array![1_u8, 2])).unwrap(), Labels::Targets(array![[1.0], [2.0]]));
    fails(Classes::read(&dataset(array![0.5, 2.0])), &["label 0", "0.5", "regression"]);
    fails(Classes::read(&dataset(array![1.0, 1e300])), &["label 1", "regression"]);
    fails(Classes::read(&dataset(array![[1.0, 2.0]])), &["one number per sample"]);
    fails(Labels::read(&dataset(array![[[1.0]]])), &["one or two axes"]);
    fails(Labels::read(&dataset(array![1.0, f64::NAN])), &["sample 1", "NaN"]);
}

#[test]
fn one_hot_and_selection() {
    let labels = Labels::read(&dataset(array![2_u8, 0])).unwrap();
    assert_eq!(labels.matrix::<f32>().unwrap(), array![[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]);
    assert_eq!(labels.select(&[1]).unwrap().matrix::<f32>().unwrap(), array![[1.0, 0.0, 0.0]]);
    fails(labels.select(&[2]), &["row 2"]);
}

#[test]
fn aligned_with_the_training_classes() {
    let names = ["ant", "bee", "cat"].map(str::to_owned);
    let (_folder, path) = file("test.csv", b"x,y\n1,cat\n2,ant\n");
    let classes = Classes::read(&open(&path, Some("y")).unwrap()).unwrap();
    assert_eq!(classes.with_names(&names).unwrap().indices(), [2, 0]);
    fails(classes.with_names(&names[..2]), &["label 0", "cat", "none of the known classes"]);
}

#[test]
fn data_and_labels_together() {
    let (_folder, path) = file("iris.csv", b"length,species,width\n5.1,setosa,3.5\n7.0,virginica,3.2\n");
    let (data, labels) = open_labelled(&Source::new(&path, None), &Source::new(&path, Some("species"))).unwrap();
    assert_eq!((data.shape(), data.columns()), (&[2, 2][..], &["length".to_owned(), "width".to_owned()][..]));
    assert_eq!(labels.n_outputs(), 2);
    let (x, y) = (Source::new(fixture("stored.npz"), Some("x")), Source::new(fixture("stored.npz"), Some("y")));
    assert_eq!(open_labelled(&x, &y).unwrap().1.n_samples(), 4);
    fails(open_labelled(&x, &Source::new(&path, Some("species"))), &["4 samples", "2 labels"]);
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn order(known: &[&str]) -> ClassOrder {
    ClassOrder::Names(names(known))
}

fn column(cells: &str) -> Classes {
    let (_folder, path) = file("labels.csv", format!("label\n{}\n", cells.replace(' ', "\n")).as_bytes());
    Classes::read(&open(&path, Some("label")).unwrap()).unwrap()
}

/// A subset with two of five classes, in any order of names.
#[test]
fn names_are_matched_to_what_knows_them() {
    let known = order(&["zero", "one", "two", "three", "four"]);
    let classes = column("three one one").ordered("l.csv", &known).unwrap();
    assert_eq!((classes.indices(), classes.n_classes()), (&[3, 1, 1][..], 5));
    fails(column("three five").ordered("l.csv", &known), &["l.csv", "label 1 is five", "`zero`, `one`"]);
    // Numbers are places where no name is a number …
    assert_eq!(column("3 0").ordered("l.csv", &known).unwrap().indices(), [3, 0]);
    fails(column("3 5").ordered("l.csv", &known), &["label 1 is 5"]);
    fails(column("-1 1").ordered("l.csv", &known), &["label 0 is -1"]);
}

#[test]
fn numbers_that_are_names_are_names() {
    let signs = order(&["-1", "1"]);
    assert_eq!(column("1 -1 1").ordered("l.csv", &signs).unwrap().indices(), [1, 0, 1]);
    assert_eq!(column("1 1").ordered("l.csv", &signs).unwrap().indices(), [1, 1]);
    fails(column("0 1").ordered("l.csv", &signs), &["label 0 is 0", "`-1`, `1`"]);
    let chosen = order(&["7", "3"]);
    assert_eq!(column("3 7").ordered("l.csv", &chosen).unwrap().indices(), [1, 0]);
    // Texts and numbers mixed: the cell `3` of a column of text is the class 3 all the same.
    let mixed = order(&["3", "other"]);
    assert_eq!(column("other 3").ordered("l.csv", &mixed).unwrap().indices(), [1, 0]);
    assert_eq!(column("3 3").ordered("l.csv", &mixed).unwrap().indices(), [0, 0]);
    fails(column("0 1").ordered("l.csv", &mixed), &["label 0 is 0"]);
}

#[test]
fn outputs_without_names_take_numbers_only() {
    let classes = column("1 0").ordered("l.csv", &ClassOrder::Outputs(10)).unwrap();
    assert_eq!((classes.indices(), classes.n_classes()), (&[1, 0][..], 10));
    fails(column("1 10").ordered("l.csv", &ClassOrder::Outputs(10)), &["label 1 is 10", "`9`"]);
    fails(
        column("cat dog").ordered("l.csv", &ClassOrder::Outputs(10)),
        &["`cat`, `dog`", "10 outputs", "give the names"],
    );
    fails(column("-1 1").ordered("l.csv", &ClassOrder::Outputs(2)), &["`-1`, `1`", "2 outputs"]);
    let targets = Labels::read(&dataset(array![0.5, 2.0])).unwrap();
    assert_eq!(targets.ordered("l.csv", &ClassOrder::Outputs(1)).unwrap(), targets);
}

#[test]
fn orders_must_agree() {
    let (cat, dog) = (names(&["cat", "dog"]), names(&["dog", "cat"]));
    assert_eq!(ClassOrder::resolve(None, None, Some(3)).unwrap(), Some(ClassOrder::Outputs(3)));
    assert_eq!(ClassOrder::resolve(None, None, None).unwrap(), None);
    assert_eq!(ClassOrder::resolve(None, Some(&cat), Some(2)).unwrap(), Some(ClassOrder::Names(cat.clone())));
    assert_eq!(ClassOrder::resolve(Some(&cat), Some(&cat), None).unwrap(), Some(ClassOrder::Names(cat.clone())));
    fails(ClassOrder::resolve(Some(&cat), Some(&dog), Some(2)), &["`cat`, `dog` were given", "`dog`, `cat`"]);
    fails(ClassOrder::resolve(Some(&cat), None, Some(10)), &["2 names", "10 outputs"]);
    fails(ClassOrder::resolve(None, Some(&cat), Some(3)), &["the network", "2 names", "3 outputs"]);
    fails(ClassOrder::resolve(Some(&names(&["a", "a"])), None, None), &["`a` occurs twice"]);
}

#[test]
fn class_names_from_a_file_or_a_list() {
    let (_folder, path) = file("classes.txt", "\u{feff}cat\r\n sea horse \n\ndog\n".as_bytes());
    assert_eq!(parse_classes(path.to_str().unwrap()).unwrap(), ["cat", "sea horse", "dog"]);
    assert_eq!(parse_classes("-1,1").unwrap(), ["-1", "1"]);
    fails(parse_classes("classes.text"), &["classes.text", "neither a file"]);
    fails(parse_classes("a,,b"), &["empty"]);
    let (_folder, path) = file("classes.bin", &[0xff, 0xfe, 0]);
    fails(parse_classes(path.to_str().unwrap()), &["UTF-8"]);
}
