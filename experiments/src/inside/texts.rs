//! Texts as they are published: CoLA, SST-2 and the tweets of Sentiment140 that people labelled.

use crate::Fallible;
use flate2::read::GzDecoder;
use mercer::data::random::stream;
use rand::seq::SliceRandom;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Sentences of CoLA from the sources of its training set, and from others.
pub(super) fn cola(folder: &Path) -> Fallible<[Vec<String>; 2]> {
    let path = folder.join("cola/cola_public.zip");
    let about = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut archive = zip::ZipArchive::new(File::open(&path).map_err(|error| about(&error))?)?;
    let mut read = |part: &str| -> Fallible<Vec<String>> {
        let mut text = String::new();
        let mut file = archive.by_name(&format!("cola_public/raw/{part}.tsv")).map_err(|error| about(&error))?;
        file.read_to_string(&mut text)?;
        Ok(text.lines().filter_map(|line| line.split('\t').nth(3)).map(str::to_owned).collect())
    };
    Ok([read("in_domain_dev")?, read("out_of_domain_dev")?])
}

/// Phrases of SST-2's training set, most of them parts of sentences, and the sentences of its test set.
pub(super) fn sst2(folder: &Path) -> Fallible<[Vec<String>; 2]> {
    let read = |part: &str| -> Fallible<Vec<String>> {
        let path = folder.join(format!("sst2/{part}.tsv.gz"));
        let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut text = String::new();
        GzDecoder::new(file).read_to_string(&mut text)?;
        Ok(text.lines().skip(1).filter_map(|line| line.rsplit_once('\t')).map(|(text, _)| text.to_owned()).collect())
    };
    Ok([read("train")?, read("test")?])
}

/// Tweets about half of the topics, by chance, and about the others.
pub(super) fn tweets(folder: &Path, seed: u64) -> Fallible<[Vec<String>; 2]> {
    let path = folder.join("sentiment140_manual_test.csv");
    let mut reader = csv::Reader::from_path(&path)?;
    let headers = reader.headers()?.clone();
    let column = |name: &str| {
        let at = headers.iter().position(|own| own == name);
        at.ok_or_else(|| format!("{}: there is no column {name}", path.display()))
    };
    let (topic, text) = (column("query")?, column("text")?);
    let rows = reader.records().collect::<Result<Vec<_>, _>>()?;
    let mut topics: Vec<&str> = rows.iter().filter_map(|row| row.get(topic)).collect();
    topics.sort_unstable();
    topics.dedup();
    topics.shuffle(&mut stream(seed, "topics"));
    let (first, _) = topics.split_at(topics.len() / 2);
    let (own, others): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.get(topic).is_some_and(|own| first.contains(&own)));
    Ok([own, others].map(|rows| rows.into_iter().filter_map(|row| row.get(text)).map(str::to_owned).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    #[test]
    fn texts_are_read_and_divided() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        assert!(cola(folder).unwrap_err().to_string().contains("cola_public.zip"));
        std::fs::create_dir(folder.join("sst2")).unwrap();
        for part in ["train", "test"] {
            let file = File::create(folder.join(format!("sst2/{part}.tsv.gz"))).unwrap();
            let mut writer = GzEncoder::new(file, Compression::default());
            writer.write_all(b"sentence\tlabel\na \"film\t1\nsecond \t0\n").unwrap();
            writer.finish().unwrap();
        }
        assert_eq!(sst2(folder).unwrap()[0], ["a \"film", "second "]);
        let table: String = (0..12).map(|row| format!("\"topic {}\",\"text {row}, quoted\"\n", row % 4)).collect();
        std::fs::write(folder.join("sentiment140_manual_test.csv"), format!("query,text\n{table}")).unwrap();
        let [own, others] = tweets(folder, 0).unwrap();
        assert_eq!((own.len(), others.len()), (6, 6));
        let topic = |text: &String| text[5..text.len() - 8].parse::<usize>().unwrap() % 4;
        assert!(own.iter().all(|text| others.iter().all(|other| topic(text) != topic(other))));
    }
}
