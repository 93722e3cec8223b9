//! Folders of images, against Pillow; files that are odd, broken or hostile.

use crate::{fails, file, fixture, open};
use mercer_data::{Classes, Dataset, ImageFolder, ImageShape, ImageWish, Source, describe, open_labels};
use mercer_run::Context;
use proptest::prelude::*;
use std::path::Path;

fn load(path: &Path, wish: ImageWish) -> mercer_data::Result<Dataset> {
    ImageFolder::list(path)?.open(wish, &Context::new()).map(|(set, _)| set)
}

fn pixels(key: &str) -> Vec<f64> {
    open(&fixture("pixels.npz"), Some(key)).unwrap().read::<f64>().unwrap().into_iter().collect()
}

/// The largest and the mean difference of an image from Pillow's.
fn difference(set: &Dataset, row: usize, key: &str) -> (f64, f64) {
    let (own, theirs) = (set.rows::<f64>(row..row + 1).unwrap(), pixels(key));
    assert_eq!(own.len(), theirs.len(), "{key}");
    let differences = own.iter().zip(&theirs).map(|(own, theirs)| (own - theirs).abs());
    (differences.clone().fold(0.0, f64::max), differences.sum::<f64>() / theirs.len() as f64)
}

#[test]
fn pixels_are_those_of_pillow() {
    let root = fixture("images");
    let folder = ImageFolder::list(&root).unwrap();
    let names: Vec<&str> = folder.names().iter().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "cat/grey.png",
            "cat/one_bit.png",
            "cat/palette.png",
            "cat/rgb.png",
            "dog/grey.jpg",
            "dog/opaque.png",
            "dog/plain.jpg",
            "dog/progressive.jpg",
            "dog/subsampled.jpg"
        ]
    );
    // The standard leaves the rounding of the transformation to the decoder, and how colours of half the resolution are
    // stretched. These pictures have the sharpest edges of colour that there are.
    let is_close = |name: &str, (largest, mean): (f64, f64)| match name {
        "dog/plain.jpg" | "dog/grey.jpg" => largest <= 2.0,
        name if name.ends_with(".jpg") => largest <= 12.0 && mean <= 1.0,
        _ => largest == 0.0,
    };
    let (set, shape) = folder.open(ImageWish::default(), &Context::new()).unwrap();
    assert_eq!((shape, set.shape()), (ImageShape { channels: 3, height: 24, width: 20 }, &[9, 3, 24, 20][..]));
    assert_eq!(set.row_names().unwrap(), names);
    assert_eq!(set.subset(&[8, 0]).unwrap().row_names().unwrap(), [names[8], names[0]]);
    for (row, name) in names.iter().enumerate() {
        let found = difference(&set, row, &format!("{name} rgb"));
        assert!(is_close(name, found), "{name}: {found:?}");
    }
    for size in [[8, 8], [32, 48]] {
        let set = load(&root, ImageWish { channels: Some(3), size: Some(size) }).unwrap();
        for (row, name) in names.iter().enumerate() {
            let found = difference(&set, row, &format!("{name} {}x{}", size[0], size[1]));
            assert!(is_close(name, found), "{name} at {size:?}: {found:?}");
        }
    }
    let grey = load(&root, ImageWish { channels: Some(1), size: None }).unwrap();
    assert_eq!(grey.shape(), [9, 1, 24, 20]);
    assert_eq!(difference(&grey, 3, "cat/rgb.png grey"), (0.0, 0.0));
}

#[test]
fn folders_are_classes() {
    let source = Source::new(fixture("images"), None);
    let set = source.open().unwrap();
    let labels = Classes::read(&open_labels(&source, &set).unwrap()).unwrap();
    assert_eq!((labels.names(), labels.counts()), (&["cat".to_owned(), "dog".into()][..], vec![4, 5]));
    let description = describe(&source).unwrap().to_string();
    for words in ["images", "u8 [9, 3, 24, 20], 9 samples", "cat × 4, dog × 5"] {
        assert!(description.contains(words), "{description}");
    }
    // A folder without class folders, all in grey.
    let flat = tempfile::tempdir().unwrap();
    for name in ["b.png", "a.png"] {
        std::fs::copy(fixture("images/cat/grey.png"), flat.path().join(name)).unwrap();
    }
    std::fs::write(flat.path().join("notes.txt"), "x").unwrap();
    std::fs::write(flat.path().join(".hidden.png"), "x").unwrap();
    let folder = ImageFolder::list(flat.path()).unwrap();
    assert_eq!((folder.names(), folder.class_names()), (&["a.png".to_owned(), "b.png".into()][..], None));
    assert!(folder.note().unwrap().contains("1 file is not PNG or JPEG"));
    assert_eq!(load(flat.path(), ImageWish::default()).unwrap().shape(), [2, 1, 24, 20]);
    fails(folder.labels(), &["no class folders"]);
}

/// One of our images in a folder of its own.
fn alone(name: &str, bytes: &[u8]) -> mercer_data::Result<Dataset> {
    let (folder, _) = file(name, bytes);
    load(folder.path(), ImageWish::default())
}

#[test]
fn what_cannot_be_read_is_named() {
    let read = |name: &str| std::fs::read(fixture(name)).unwrap();
    fails(alone("a.png", &read("odd/transparent.png")), &["a.png", "transparent"]);
    fails(alone("a.png", &read("odd/animated.png")), &["a.png", "animated"]);
    fails(alone("a.jpg", &read("odd/cmyk.jpg")), &["a.jpg", "CMYK"]);
    fails(alone("a.png", b"GIF89a"), &["a.png", "neither PNG nor JPEG"]);
    // The upper half of 16 bits.
    let deep = alone("a.png", &read("odd/sixteen_bits.png")).unwrap().read::<f64>().unwrap();
    assert_eq!(deep.iter().copied().nth(79), Some(f64::from(79 * 130 / 256)));
    // The name does not decide.
    assert!(alone("a.png", &read("images/dog/plain.jpg")).is_ok());
    for name in ["images/cat/rgb.png", "images/dog/plain.jpg", "images/dog/progressive.jpg"] {
        let whole = read(name);
        for cut in [whole.len() / 2, whole.len() * 3 / 4] {
            fails(alone("cut.png", &whole[..cut]), &["cut.png", "not a valid"]);
        }
    }
    // 4 × 10⁹ pixels in the header, none in the file.
    let mut bomb = read("images/cat/rgb.png");
    bomb[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    let checksum = crc32fast::hash(&bomb[12..29]);
    bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    fails(alone("bomb.png", &bomb), &["bomb.png", "65535×65535", "too large"]);
}

#[test]
fn folders_that_are_not_sets_are_named() {
    let root = tempfile::tempdir().unwrap();
    let list = || ImageFolder::list(root.path());
    fails(list(), &["no PNG or JPEG"]);
    std::fs::create_dir(root.path().join("cat")).unwrap();
    fails(list(), &["cat", "no PNG or JPEG", "remove it"]);
    std::fs::copy(fixture("images/cat/rgb.png"), root.path().join("cat/1.png")).unwrap();
    assert!(list().is_ok());
    std::fs::copy(fixture("images/cat/rgb.png"), root.path().join("2.png")).unwrap();
    fails(list(), &["images (2.png) beside folders (cat)"]);
    std::fs::remove_file(root.path().join("2.png")).unwrap();
    std::fs::create_dir(root.path().join("cat/young")).unwrap();
    fails(list(), &["cat", "folder young"]);
    std::fs::remove_dir(root.path().join("cat/young")).unwrap();
    // Another size.
    std::fs::copy(fixture("images/cat/rgb.png"), root.path().join("cat/3.png")).unwrap();
    let mut wide = Vec::new();
    let mut encoder = png::Encoder::new(&mut wide, 7, 5);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[9; 35]).unwrap();
    std::fs::write(root.path().join("cat/2.png"), wide).unwrap();
    fails(load(root.path(), ImageWish::default()), &["2.png", "7×5", "1.png is of 20×24", "‹resize›"]);
    let resized = load(root.path(), ImageWish { channels: None, size: Some([4, 4]) }).unwrap();
    assert_eq!(resized.shape(), [3, 3, 4, 4]);
    let note = describe(&Source::new(root.path(), None)).unwrap().note.unwrap();
    assert!(note.contains("7×5"), "{note}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bytes_of_an_image(
        name in prop::sample::select(vec!["cat/rgb.png", "cat/palette.png", "dog/plain.jpg", "dog/subsampled.jpg", "dog/progressive.jpg"]),
        flips in prop::collection::vec((any::<usize>(), 0_u32..8), 1..4),
    ) {
        let mut bytes = std::fs::read(fixture("images").join(name)).unwrap();
        for (at, bit) in flips {
            let at = at % bytes.len();
            bytes[at] ^= 1_u8 << bit;
        }
        let _ = alone("flipped.png", &bytes);
    }
}
