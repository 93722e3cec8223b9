use mercer_data::{Classes, Dataset, Labels, Source, open_labelled};
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
