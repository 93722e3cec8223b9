//! `mercer report`: samples of data sets as pictures and texts, and the reason where they are not shown.

use crate::folder::Folder;
use mercer::report::{Channels, Picture};
use ndarray::Array4;
use serde_json::Value;
use std::path::Path;

fn page(folder: &Folder, runs: &str) -> String {
    folder.succeed(&format!("report {runs} -o page.html --force"));
    std::fs::read_to_string(folder.path("page.html")).unwrap()
}

/// The data of the browsers of a page.
fn browsers(html: &str) -> Vec<Value> {
    let parts = html.split("<script type=\"application/json\">").skip(1);
    parts.map(|part| serde_json::from_str(part.split("</script>").next().unwrap()).unwrap()).collect()
}

/// The cards of a page, as text.
fn cards(html: &str) -> Vec<&str> {
    html.split("<article class=\"card\">").skip(1).map(|part| part.split("</article>").next().unwrap()).collect()
}

/// Texts in cards, in the browsers and in their tables; those of the training samples, too.
#[test]
fn texts_can_be_read() {
    let folder = Folder::with(&[]);
    let texts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mercer/tests/fixtures/texts").display().to_string();
    let row = |row: usize| format!("{row},the cat sat,good\n{},\"a dog, on mat\",bad\n", row + 1);
    let many: String = (0..6).map(|pair| row(2 * pair)).collect();
    folder.write("many.csv", format!("id,text,mood\n{many}").as_bytes());
    folder.write("new.csv", b"text,mood\n\"the cat sat on the mat\",good\na <b>dog</b>,bad\n");
    let data = "--data many.csv:text --labels many.csv:mood";
    folder.succeed(&format!(
        "train --net {texts}/embedder.onnx --head 2 {data} --tokenizer {texts}/wordpiece.json --epochs 6 --batch 4 \
         --learning-rate 0.05 -o run"
    ));
    // The network knows the tokenizer.
    let data = format!("--net run/model.onnx {data} --ids many.csv:id --penalty 1");
    folder.succeed(&format!("explain {data} --test new.csv:text --test-labels new.csv:mood -o why"));
    folder.succeed(&format!("audit {data} -o review"));
    let html = page(&folder, "run why review");
    let cards = cards(&html);
    assert!(cards.iter().any(|card| card.contains("<q>the cat sat on the mat</q>")), "{cards:?}");
    assert!(cards.iter().any(|card| card.contains("<q>a dog, on mat</q>") && card.contains("bad (6)")), "{cards:?}");
    assert!(html.contains("<td>a &lt;b&gt;dog&lt;/b&gt;</td>") && !html.contains("<b>"));
    let found = browsers(&html);
    let of =
        |name: &str| found[0]["samples"].as_array().unwrap().iter().find(|own| own["name"] == name).unwrap().clone();
    assert_eq!(
        (of("0")["text"].as_str(), of("1")["text"].as_str()),
        (Some("the cat sat on the mat"), Some("a <b>dog</b>"))
    );
    for example in of("0")["examples"].as_array().unwrap() {
        let (id, text) = (example[0].as_str().unwrap().parse::<usize>().unwrap(), &example[4]);
        assert_eq!(text, ["the cat sat", "a dog, on mat"][id % 2]);
    }
    let reviewed = found[1]["samples"].as_array().unwrap();
    assert!(reviewed.len() == 12 && reviewed.iter().all(|own| own["text"].as_str().unwrap().len() > 10));
    // Other texts than those that were explained are not shown, and the page says why.
    folder.write("new.csv", b"text,mood\nthe mat sat on the cat,good\na dog,bad\n");
    let html = page(&folder, "why");
    assert!(
        !html.contains("the mat sat") && html.contains("new.csv:text no longer holds the numbers that the run saw")
    );
    assert!(browsers(&html)[0]["samples"][0]["text"].is_null());
}

/// Images in two colours by class, as files.
fn write_images(folder: &Folder, name: &str, darker: u8) {
    for (class, colour) in [("warm", [250, 90, 10]), ("cold", [10, 90, 250])] {
        std::fs::create_dir_all(folder.path(&format!("{name}/{class}"))).unwrap();
        for at in 0..8_u8 {
            let pixel = |place: u8| colour.map(|own: u8| own.saturating_sub(2 * (place % 12) + at + darker));
            let bytes = (0..12 * 12).flat_map(|place| pixel(place as u8)).collect();
            let picture = Picture::new(12, 12, Channels::Rgb, bytes).unwrap();
            folder.write(&format!("{name}/{class}/{at}.png"), &picture.to_png());
        }
    }
}

const NETWORK: &[u8] = b"[cnn]\ninputs = [3, 8, 8]\noutputs = 2\nlayers = [\n    { conv = { channels = 4, kernel = 3 } },\n    { max-pool = { size = 2 } },\n    { dense = { width = 8 } },\n]\n";

/// The number of pictures on cards, and whether every sample and example of the browsers has one.
fn pictures(html: &str) -> (usize, bool) {
    let found = browsers(html);
    let samples = found.iter().flat_map(|own| own["samples"].as_array().unwrap());
    let mut all = true;
    for sample in samples {
        all &= sample["picture"].is_u64();
        all &= sample["examples"].as_array().unwrap().iter().all(|own| own[3].is_u64());
    }
    (cards(html).iter().map(|card| card.matches("<img").count()).sum(), all && !found.is_empty())
}

/// Folders of images, resized and normalised, and arrays with the channels last.
#[test]
fn images_can_be_seen() {
    let folder = Folder::with(&[]);
    write_images(&folder, "images", 0);
    write_images(&folder, "new", 3);
    folder.write("cnn.toml", NETWORK);
    let read = "--resize 8 --scale 1/255 --mean 0.5,0.4,0.5 --std 0.3";
    folder.succeed(&format!("train --arch cnn.toml --data images {read} --epochs 30 -o run"));
    let net = "--net run/model.onnx --data images --penalty 1";
    folder.succeed(&format!("explain {net} --test new --test-labels new {read} -o why"));
    folder.succeed(&format!("audit {net} --labels images {read} -o review"));
    let html = page(&folder, "run why review");
    assert_eq!(pictures(&html), (24, true), "{:?}", cards(&html));
    assert!(html.contains("2: cold (8), warm (8)") && html.contains("[3, 8, 8]"), "{:?}", cards(&html));
    assert!(browsers(&html)[1]["samples"][0]["name"].as_str().unwrap().ends_with(".png"));
    // A folder that is gone: the page says so.
    std::fs::rename(folder.path("new"), folder.path("moved")).unwrap();
    let html = page(&folder, "why");
    assert!(!pictures(&html).1);
    assert!(
        html.contains("samples not shown") && html.contains("The test samples themselves are not shown: "),
        "{:?}",
        cards(&html)
    );
    // Bytes with the channels last.
    let colours = |row: usize| if row.is_multiple_of(2) { [250_u8, 90, 10] } else { [10, 90, 250] };
    let bytes = Array4::from_shape_fn((16, 8, 8, 3), |(row, y, _, channel)| {
        colours(row)[channel].saturating_sub((y + row) as u8)
    });
    folder.write_array("bytes.npy", bytes.view());
    let labels = ndarray::Array1::from_shape_fn(16, |row| (row % 2) as i64);
    folder.write_array("labels.npy", labels.view());
    let read = "--layout nhwc --scale 1/255 --mean 0.5,0.4,0.5 --std 0.3";
    folder.succeed(&format!("train --arch cnn.toml --data bytes.npy --labels labels.npy {read} --epochs 30 -o other"));
    folder.succeed(&format!(
        "explain --net other/model.onnx --data bytes.npy --labels labels.npy --test bytes.npy {read} --penalty 1 -o why2"
    ));
    assert_eq!(pictures(&page(&folder, "other why2")), (12, true));
    // An index that is used again: new samples are read as its folder says.
    folder.succeed("explain --from why2 --test bytes.npy -o why3");
    assert_eq!(pictures(&page(&folder, "why3")).0, 12);
}

/// Networks and data that are gone are no errors, and the page gives the reason.
#[test]
fn what_is_gone_is_said() {
    let folder = Folder::with(&[]);
    write_images(&folder, "images", 0);
    folder.write("cnn.toml", NETWORK);
    folder.succeed("train --arch cnn.toml --data images --resize 8 --scale 1/255 --epochs 2 -o run");
    folder.succeed(
        "explain --net run/model.onnx --data images --resize 8 --scale 1/255 --test images --penalty 1 -o why",
    );
    std::fs::remove_dir_all(folder.path("run")).unwrap();
    let html = page(&folder, "why");
    let cards = cards(&html);
    assert!(cards[0].contains("<dt>not shown</dt><dd>run/model.onnx"), "{cards:?}");
    assert!(cards[1].contains("the network that read them: run/model.onnx"), "{cards:?}");
}
