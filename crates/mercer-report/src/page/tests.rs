//! Pages as a whole.

use super::*;
use crate::{Axis, Figure, Panel, Series};

/// Names that would run, load or break out of something, if they were not text.
const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "]]><!--",
    "\u{0}\u{7f}\u{2028}&lt;b&gt;",
];

fn figure(name: &str) -> Drawing {
    let line = Series::line(name, [(0.0, 1.0), (1.0, 2.0)]);
    Drawing::of(&Figure::new(name).panel(Panel::lines(name, Axis::names(name, [name]), Axis::linear(name), [line])))
}

fn page(name: &str) -> Page {
    let text = || name.to_owned();
    let mut page = Page::new(name);
    (page.about, page.foot) = (text(), text());
    page.findings = (0..9).map(|_| Finding { text: text(), from: text(), link: Some(text()) }).collect();
    let mut table = Table::new(name, [name], name);
    (0..300).for_each(|_| table.row([name]));
    let picture = Picture::from_chw((0..4).map(f64::from), [1, 2, 2], None).unwrap();
    page.cards.push(Card {
        title: text(),
        facts: vec![(text(), text())],
        pictures: vec![(picture.clone(), text())],
        texts: vec![(text(), text())],
        table: Some(table.clone()),
    });
    let mut browser = Browser::new(name, 1);
    browser.note = text();
    let number = browser.picture(name, || Some(picture.clone()));
    browser.samples.push(Sample {
        name: text(),
        why: vec![text()],
        picture: number,
        text: text(),
        facts: vec![(text(), text())],
        warning: text(),
        examples: vec![Example { name: text(), label: text(), value: 1.0, picture: number, text: text() }],
        distribution: vec![(text(), [0.0, 1.0, 2.0, 3.0, 4.0, f64::NAN])],
        probabilities: vec![(text(), 0.5, None)],
        coordinates: vec![(text(), 1.0)],
        marks: vec![(text(), vec![0.0, 1.0])],
    });
    page.browsers.push(browser);
    let mut section = Section::new(name, name);
    (section.asked, section.command) = (text(), text());
    section.sentences.push(text());
    section.warnings.push(text());
    section.notes.push(text());
    section.figures.push(FigureBlock::new(name, name, figure(name)));
    let steps = (0..3).map(|_| (text(), figure(name))).collect();
    section.figures.push(FigureBlock::stepped(name, name, name, steps));
    section.tables.push(table);
    for list in [&mut section.facts, &mut section.settings, &mut section.record] {
        list.push((text(), text()));
    }
    page.sections.push(section);
    page
}

/// Every tag of a page with hostile names is one that the page has with harmless ones.
#[test]
fn names_are_never_markup() {
    let tags = |html: &str| -> std::collections::BTreeSet<String> {
        let plain = html.split("<style>").next().unwrap().to_owned()
            + html.split("</style>").nth(1).unwrap().split("<script>\"use").next().unwrap();
        let mut found = std::collections::BTreeSet::new();
        for part in plain.split('<').skip(1) {
            let tag = part.split('>').next().unwrap();
            // The name of the element, and those of its attributes.
            let names = tag.split('"').step_by(2).collect::<Vec<_>>().join("");
            found.insert(names);
        }
        found
    };
    // Long enough to be shortened wherever a hostile name is.
    let expected = tags(&page(&"harmless ".repeat(12)).to_html());
    for name in HOSTILE {
        let html = page(name).to_html();
        let found = tags(&html);
        assert!(found.is_subset(&expected), "{name:?}: {:?}", found.difference(&expected).collect::<Vec<_>>());
        assert_eq!(html, page(name).to_html(), "the same bytes");
    }
}

#[test]
fn policies_name_the_script_and_the_style() {
    let html = page("x").to_html();
    assert!(Page::is_ours(html.as_bytes()) && !Page::is_ours(b"<!doctype html>") && !Page::is_ours(b""));
    // By another implementation: printf '' | openssl dgst -sha256 -binary | base64
    assert_eq!(hash(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    assert!(html.contains(&format!("script-src 'sha256-{}'; style-src 'sha256-{}'", hash(SCRIPT), hash(STYLE))));
    assert!(!html.contains(" style=") && !html.contains("https:"));
    assert_eq!(html.matches("http").count(), html.matches("http-equiv").count() + SCRIPT.matches("http").count());
    assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("</") && !STYLE.contains('<'));
}

#[test]
fn pages_stay_small() {
    let mut page = Page::new("large");
    for at in 0..40 {
        let mut section = Section::new("probe", format!("run {at}"));
        let points = |shift: u32| (0..5000).map(move |x| (f64::from(x), f64::from((x * 7919 + shift) % 1000)));
        for name in 0..3 {
            let panel = Panel::scatter("s", Axis::linear("x"), Axis::linear("y"), [("a", points(name))]);
            section.figures.push(FigureBlock::new(
                format!("f{at}-{name}"),
                "points",
                Drawing::of(&Figure::new("").panel(panel)),
            ));
        }
        page.sections.push(section);
    }
    let html = page.to_html();
    assert!(html.len() <= Page::LIMIT, "{}", html.len());
    assert!(html.len() > Page::LIMIT / 2 && html.contains("Left out, to keep this page small: the figure “points”"));
}

/// Many results with very long names: each of them alone would be larger than the page.
#[test]
fn pages_stay_small_for_any_names() {
    for (name, many) in [("𝔏".repeat(600_000), 3), ("<&\"".repeat(2000), 400), ("name ".repeat(50), 2000)] {
        let mut large = page(&name);
        let one = large.sections.remove(0);
        large.sections = vec![one; many.min(300)];
        large.cards = vec![large.cards[0].clone(); many];
        large.findings = vec![large.findings[0].clone(); 10 * many];
        large.browsers = vec![large.browsers[0].clone(); 3];
        let html = large.to_html();
        assert!(html.len() <= Page::LIMIT, "{} of {many}", html.len());
        // Something of everything is there.
        for part in ["<ol class=\"found\">", "<article class=\"card\">", "class=\"job\"", "\"samples\":[{"] {
            assert!(html.contains(part), "{part} of {many}");
        }
    }
}

/// What is shortened can be read as a whole, and links lead to something.
#[test]
fn long_names_are_behind_short_ones() {
    let name = "a long name ".repeat(40);
    let html = page(&name).to_html();
    assert!(html.contains(&format!("<span title=\"{name}\">")) && html.contains('…'));
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
    for link in html.split("href=\"#").skip(1).filter_map(|part| part.split('"').next()) {
        assert!(ids.contains(&link), "{link} of {ids:?}");
    }
}
