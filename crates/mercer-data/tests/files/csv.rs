use std::io::Write;

use flate2::write::GzEncoder;
use mercer_data::{Dataset, Format, Result, Source, describe};

use crate::{fails, file, fixture, open};

fn read(text: &str, key: Option<&str>) -> Result<Dataset> {
    let (_folder, path) = file("table.csv", text.as_bytes());
    open(&path, key)
}

fn values(text: &str, key: Option<&str>) -> (Vec<usize>, Vec<f64>) {
    let dataset = read(text, key).unwrap();
    (dataset.shape().to_vec(), dataset.read().unwrap().into_iter().collect())
}

#[test]
fn with_and_without_header_and_with_any_separator() {
    let expected = (vec![2, 2], vec![1.0, 2.5, -3.0, 4e2]);
    for text in [
        "1,2.5\n-3,4e2\n",
        "a,b\n1,2.5\n-3,4e2",
        "\u{feff}a;b\r\n1;2.5\r\n-3;4e2\r\n",
        "a\tb\n 1\t2.5 \n-3\t4e2\n",
        "  1   2.5\n -3 4e2  \n\n",
        "# made by hand\n1 2.5\n-3 4e2\n",
        "\"a, or b\",\"c\"\n\"1\",2.5\n\n-3,4e2\n",
    ] {
        assert_eq!(values(text, None), expected, "{text:?}");
    }
}

#[test]
fn numpy_savetxt() {
    let dataset = open(&fixture("savetxt.txt"), None).unwrap();
    assert_eq!((dataset.format(), dataset.shape()), (Format::Csv, &[3, 2][..]));
    assert_eq!(dataset.rows::<f32>(2..3).unwrap().as_slice(), Some(&[4.0, 5.0][..]));
}

const IRIS: &str = "length,width,species\n5.1,3.5,setosa\n7.0,3.2,versicolor\n4.9,3.0,setosa\n";

#[test]
fn columns() {
    assert_eq!(values(IRIS, Some("width")), (vec![3], vec![3.5, 3.2, 3.0]));
    assert_eq!(values(IRIS, Some("1")), (vec![3], vec![3.5, 3.2, 3.0]));
    assert_eq!(values(IRIS, Some("width,length")), (vec![3, 2], vec![3.5, 5.1, 3.2, 7.0, 3.0, 4.9]));
    assert_eq!(values(IRIS, Some("-species")).0, [3, 2]);
    assert_eq!(read(IRIS, Some("-species")).unwrap().columns(), ["length", "width"]);
    assert_eq!(values("a,\"b,c\"\n1,2\n", Some("b,c")), (vec![1], vec![2.0]));
    fails(read(IRIS, Some("colour")), &["no `colour`", "`species`"]);
    fails(read(IRIS, Some("3")), &["no `3`"]);
    fails(read(IRIS, Some("-length,width,species")), &["no column is left"]);
}

#[test]
fn whole_numbers_are_noticed() {
    assert!(read("1,2\n3,4\n", None).unwrap().is_integer());
    assert!(!read("1,2\n3,4.0\n", None).unwrap().is_integer());
}

#[test]
fn faults_name_line_and_column() {
    fails(read(IRIS, None), &["line 2", "column 3 (species)", "`setosa`", "FILE:-COLUMN"]);
    fails(read("a,b\n1,2\n\n3,x\n", None), &["line 4", "column 2 (b)", "`x`"]);
    fails(read("a,b\n1,2\n3,\n", None), &["line 3", "column 2 (b)", "is empty"]);
    fails(read("a,b\n1,2\nnan,1\n", None), &["line 3", "column 1 (a)", "not finite"]);
    fails(read("a b\n1 2\n3 x\n", None), &["line 3", "column 2 (b)"]);
    fails(read("a,b\n1,2\n3\n", None), &["line 3 has 1 columns", "has 2"]);
    fails(read("a,b\n1,2\n3,?\n", Some("b")), &["line 3", "`?`"]);
    fails(read("a,s\n1,x\n3,\n", Some("s")), &["line 3", "is empty"]);
    fails(read("a,b\n\"1\n\n\",2\n\n3,x\n", None), &["line 6", "column 2 (b)"]);
    fails(read("a,b\n1,\"2\n3,4\n", None), &["opened in line 2", "never closed"]);
    fails(read("", None), &["empty"]);
    fails(read("\n\n", None), &["no lines"]);
}

#[test]
fn text_is_not_data() {
    fails(read(IRIS, Some("species")).unwrap().read::<f32>(), &["text", "labels"]);
}

#[test]
fn only_a_header() {
    assert_eq!(values("a,b\n", None).0, [0, 2]);
}

#[test]
fn gzipped() {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(b"a,b\n1,2\n").unwrap();
    let (_folder, path) = file("table.csv.gz", &encoder.finish().unwrap());
    assert_eq!(open(&path, None).unwrap().shape(), [1, 2]);
}

#[test]
fn not_utf8() {
    let (_folder, path) = file("latin.csv", &[b"1,2\n".repeat(2000).as_slice(), b"caf\xe9,2\n"].concat());
    fails(open(&path, Some("1")), &["line 2001", "UTF-8"]);
}

/// More than fits the part that is kept in memory, so that it goes through a temporary file.
#[test]
fn a_large_table_is_spooled() {
    let n_rows = 3 << 20;
    let text: String = (0..n_rows).map(|row| format!("{row},{},7\n", row % 10)).collect();
    let (_folder, path) = file("large.csv", text.as_bytes());
    let dataset = open(&path, None).unwrap();
    assert_eq!(dataset.shape(), [n_rows, 3]);
    let last: Vec<f64> = dataset.rows(n_rows - 1..n_rows).unwrap().into_iter().collect();
    assert_eq!(last, [(n_rows - 1) as f64, ((n_rows - 1) % 10) as f64, 7.0]);
}

#[test]
fn described() {
    let (_folder, path) = file("iris.csv", IRIS.as_bytes());
    let whole = describe(&Source::new(&path, None)).unwrap();
    assert_eq!(whole.columns, ["length", "width", "species"]);
    assert!(whole.note.unwrap().contains("species"));
    let species = describe(&Source::new(&path, Some("species"))).unwrap();
    assert_eq!(species.summary.unwrap().labels, [("setosa".to_owned(), 2), ("versicolor".to_owned(), 1)]);
}
