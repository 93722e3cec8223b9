//! Reports: one page of HTML that holds everything it shows.
//!
//! A [`Page`] is data: findings, cards, a browser of samples, and a section per result with figures and tables.
//! [`Page::to_html`] writes it. The page needs nothing from elsewhere. Its policy (`default-src 'none'`) allows one script
//! and one style sheet, by their digests, and pictures that are part of it. All text is escaped in one place
//! (`html.rs`), figures are read and written again ([`Drawing`]), and the script sets text as text alone. A name or a text
//! of a data set can therefore not become part of the program.
//!
//! Without the script everything is there to read: findings, figures, tables. With it, tables can be sorted and filtered,
//! figures show values, samples can be picked.
//!
//! The page is at most [`Page::LIMIT`] bytes, whatever it is made from. Names and texts are shortened, tables and lists have
//! limits of their own, and figures and tables that do not fit are named instead. The same data give the same bytes.
//!
//! There is no template engine: a page is a dozen of kinds of elements. There is no plotting library in the script, which
//! has 27 KB: the smallest common ones have 40 KB to 4 MB, and would draw again what [`Figure`](crate::Figure) has drawn.
//!
//! ```
//! use mercer_report::page::{Finding, Page, Section};
//!
//! let mut page = Page::new("A network");
//! page.findings.push(Finding { text: "It is right in 98 % <of cases>.".to_owned(), from: "train".to_owned(), link: None });
//! page.sections.push(Section::new("train", "run"));
//! let html = page.to_html();
//! assert!(html.contains("98 % &lt;of cases&gt;") && html.contains("default-src 'none'"));
//! ```

mod card;
mod drawing;
mod html;
mod samples;
mod section;
mod table;

pub use drawing::Drawing;
pub use samples::{Browser, Example, Sample};
pub use table::Table;

use crate::figure::{Picture, base64, grouped};
use html::{NAME, Tips, element, escape, shortened};
use mercer_data::folder::digest;
use section::Rank;
use std::collections::BTreeSet;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Findings that are shown at once; the others can be unfolded.
const FINDINGS: usize = 6;

/// The bytes that findings beyond the first ones may take.
const MORE_FINDINGS: usize = 150_000;

/// The most results with a section.
const SECTIONS: usize = 100;

/// The bytes of the head of the page, its policy, and the tags around its parts.
const FRAME: usize = 8192;

/// A report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// A line below the title.
    pub about: String,
    /// What was found, the most important first.
    pub findings: Vec<Finding>,
    /// What was looked at: networks and data.
    pub cards: Vec<Card>,
    /// Single samples.
    pub browsers: Vec<Browser>,
    /// A section per result.
    pub sections: Vec<Section>,
    /// The last line.
    pub foot: String,
}

/// A sentence about what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// The job that found it.
    pub from: String,
    /// The identifier of its figure or section.
    pub link: Option<String>,
}

/// What was looked at: a network or a data set.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Its kind and name.
    pub title: String,
    /// What is known about it.
    pub facts: Vec<(String, String)>,
    /// Pictures of some samples, with captions.
    pub pictures: Vec<(Picture, String)>,
    /// Some samples that are texts, with captions.
    pub texts: Vec<(String, String)>,
    /// Details, such as layers.
    pub table: Option<Table>,
}

/// A result.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The job.
    pub job: String,
    /// The folder or file.
    pub place: String,
    /// What was asked, in a sentence.
    pub asked: String,
    /// What was found.
    pub sentences: Vec<String>,
    /// What a reader should beware of.
    pub warnings: Vec<String>,
    /// What cannot be shown, and why.
    pub notes: Vec<String>,
    /// Figures.
    pub figures: Vec<FigureBlock>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Single numbers and words.
    pub facts: Vec<(String, String)>,
    /// The settings.
    pub settings: Vec<(String, String)>,
    /// The command that makes it again.
    pub command: String,
    /// How it was made: versions, inputs, outputs.
    pub record: Vec<(String, String)>,
}

/// A figure of a section.
#[derive(Clone, Debug)]
pub struct FigureBlock {
    /// The identifier, which consists of letters, digits and hyphens.
    pub id: String,
    /// What it shows.
    pub caption: String,
    /// The drawing, or one per step of a slider, with the names of the steps.
    pub steps: Vec<(String, Drawing)>,
    /// What the slider chooses, such as `epoch`; empty for a single drawing.
    pub slider: String,
}

impl FigureBlock {
    /// A single drawing.
    pub fn new(id: impl Into<String>, caption: impl Into<String>, drawing: Drawing) -> Self {
        Self { id: id.into(), caption: caption.into(), steps: vec![(String::new(), drawing)], slider: String::new() }
    }

    /// Several drawings, of which a slider chooses one. The last one is shown first.
    pub fn stepped(
        id: impl Into<String>,
        caption: impl Into<String>,
        slider: impl Into<String>,
        steps: Vec<(String, Drawing)>,
    ) -> Self {
        Self { id: id.into(), caption: caption.into(), steps, slider: slider.into() }
    }
}

impl Section {
    /// A result of a job in a folder or file.
    pub fn new(job: impl Into<String>, place: impl Into<String>) -> Self {
        Self { job: job.into(), place: place.into(), ..Self::default() }
    }
}

/// The line by which a page of ours is known.
const GENERATOR: &str = "<meta name=\"generator\" content=\"Mercer\">";

/// The bytes within which that line is.
const HEAD: usize = 2048;

impl Page {
    /// Whether a file begins like a page that was made here.
    pub fn is_ours(beginning: &[u8]) -> bool {
        let head = &beginning[..beginning.len().min(HEAD)];
        head.windows(GENERATOR.len()).any(|part| part == GENERATOR.as_bytes())
    }

    /// The most bytes of a page.
    pub const LIMIT: usize = 2_000_000;

    /// A page about something.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The page, as one file.
    pub fn to_html(&self) -> String {
        let tips = Tips::default();
        let shown = &self.sections[..self.sections.len().min(SECTIONS)];
        let beginning = self.beginning(shown, None);
        let heads: Vec<String> = shown.iter().enumerate().map(|(at, section)| section.head(at, &tips)).collect();
        let mut parts: Vec<_> = shown.iter().map(|section| section.parts(&tips)).collect();
        let foot = element("footer", "", &shortened(&self.foot, 800));
        // What must be there is counted first; the rest shares the room by rank.
        let fixed = STYLE.len() + SCRIPT.len() + FRAME + beginning.len() + foot.len();
        let each: usize = heads.iter().map(|head| head.len() + Section::NOTE + 20).sum();
        let mut room = Self::LIMIT.saturating_sub(fixed + each);
        let share = room / 4;
        let mut fits = |html: &str| {
            let left = room.checked_sub(html.len());
            room = left.unwrap_or(room);
            left.is_some()
        };
        let mut left_out: Vec<Vec<String>> = vec![Vec::new(); shown.len()];
        let mut give = |rank: Rank, parts: &mut Vec<Vec<section::Part>>, fits: &mut dyn FnMut(&str) -> bool| {
            for (parts, left_out) in parts.iter_mut().zip(&mut left_out) {
                for part in parts.iter_mut().filter(|part| part.rank == rank) {
                    if !fits(&part.html) {
                        left_out.push(std::mem::take(&mut part.name));
                        part.html.clear();
                    }
                }
            }
        };
        let mut cards = Several::new(self.cards.iter().map(|card| card.html(&tips)));
        let numbered = self.browsers.iter().enumerate();
        let mut browsers = Several::new(numbered.map(|(at, browser)| browser_html(browser, at, &tips)));
        // Some of everything, however much there is of one kind.
        cards.take(share, &mut fits);
        browsers.take(share, &mut fits);
        give(Rank::Said, &mut parts, &mut fits);
        give(Rank::Record, &mut parts, &mut fits);
        cards.take(usize::MAX, &mut fits);
        browsers.take(usize::MAX, &mut fits);
        give(Rank::Drawn, &mut parts, &mut fits);
        let (cards, browsers) = (cards.taken(), browsers.taken());

        let mut body = String::new();
        if !cards.is_empty() {
            let more = more(self.cards.len() - cards.len(), "network or data set", "networks or data sets");
            let cards: String = cards.concat();
            body.push_str(&format!(
                "<section id=\"cards\"><h2>What was looked at</h2><div class=\"cards\">{cards}</div>{more}</section>"
            ));
        }
        let lost = self.browsers.len() - browsers.len();
        body.extend(browsers);
        body.push_str(&more(lost, "list of single samples", "lists of single samples"));
        for (((section, head), parts), names) in shown.iter().zip(heads).zip(parts).zip(left_out) {
            body.push_str(&head);
            body.extend(parts.into_iter().map(|part| part.html));
            body.push_str(&section.left_out(&names));
            body.push_str("</section>");
        }
        body.push_str(&more(self.sections.len() - shown.len(), "result", "results"));
        body.push_str(&format!("</main>{foot}"));
        // Findings whose figure had no room lead to its section.
        let ids: BTreeSet<&str> = body.split(" id=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
        let body = self.beginning(shown, Some(&ids)) + &body;
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; \
             form-action 'none'",
            hash(SCRIPT),
            hash(STYLE)
        );
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n{GENERATOR}\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
            escape(&shortened(&self.title, 200))
        )
    }

    /// Title and findings. If it is known which identifiers there are, links lead to no others.
    fn beginning(&self, shown: &[Section], ids: Option<&BTreeSet<&str>>) -> String {
        let tips = Tips::default();
        let mut text =
            String::from("<a class=\"skip\" href=\"#findings\">To the findings</a><header class=\"top\"><div>");
        text.push_str(&tips.element("h1", "", &self.title, 200));
        text.push_str(&tips.element("p", "", &self.about, 400));
        text.push_str("</div><nav aria-label=\"Sections\"><ul>");
        for (at, section) in shown.iter().enumerate() {
            text.push_str(&format!("<li><a href=\"#s{at}\">{}</a></li>", escape(&shortened(&section.job, 40))));
        }
        text.push_str("</ul></nav></header><main><section id=\"findings\"><h2>What was found</h2>");
        let one = |finding: &Finding| {
            let link = finding.link.as_deref().map(|link| escape(&shortened(link, NAME)));
            let there = |link: &String| ids.is_none_or(|ids| ids.contains(link.as_str()));
            // Identifiers of figures are those of their section with a name.
            let section = link.as_ref().map(|link| link.split('-').next().unwrap_or_default().to_owned());
            let link = link.filter(there).or(section.filter(there)).map_or(String::new(), |link| {
                let word = if link.contains('-') { "figure" } else { "section" };
                format!(" <a href=\"#{link}\">{word}</a>")
            });
            let tag = element("span", "tag", &shortened(&finding.from, 40));
            let said = tips.element("span", "", &finding.text, 800);
            format!("<li>{said} <span class=\"from\">{tag}{link}</span></li>")
        };
        let (first, rest) = self.findings.split_at(self.findings.len().min(FINDINGS));
        text.push_str(&format!("<ol class=\"found\">{}</ol>", first.iter().map(one).collect::<String>()));
        if !rest.is_empty() {
            let mut list = String::new();
            let mut count = 0;
            for finding in rest {
                let html = one(finding);
                if list.len() + html.len() > MORE_FINDINGS {
                    break;
                }
                list.push_str(&html);
                count += 1;
            }
            text.push_str(&format!(
                "<details><summary>{} more</summary><ol class=\"found more\" start=\"{}\">{list}</ol>{}</details>",
                rest.len(),
                first.len() + 1,
                more(rest.len() - count, "sentence", "sentences"),
            ));
        }
        text.push_str("</section>");
        text
    }
}

/// Parts of one kind, of which some are taken.
struct Several(Vec<(String, bool)>);

impl Several {
    fn new(parts: impl Iterator<Item = String>) -> Self {
        Self(parts.map(|part| (part, false)).collect())
    }

    /// Takes those that fit, as long as they are not more than a share of the page.
    fn take(&mut self, mut share: usize, fits: &mut dyn FnMut(&str) -> bool) {
        for (part, taken) in self.0.iter_mut().filter(|(_, taken)| !taken) {
            if let Some(left) = share.checked_sub(part.len())
                && fits(part)
            {
                (share, *taken) = (left, true);
            }
        }
    }

    fn taken(self) -> Vec<String> {
        self.0.into_iter().filter_map(|(part, taken)| taken.then_some(part)).collect()
    }
}

/// Says how many of something had no room.
fn more(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => String::new(),
        1 => element("p", "note", &format!("1 {one} is left out, to keep this page small.")),
        _ => element("p", "note", &format!("{} {many} are left out, to keep this page small.", grouped(count))),
    }
}

fn browser_html(browser: &Browser, at: usize, tips: &Tips) -> String {
    let (n_shown, data) = browser.data();
    let lost = browser.samples.len() - n_shown;
    format!(
        "<section class=\"browser\" id=\"samples{at}\"><h2>{}</h2><p class=\"asked\">{}</p>{}\
         <div class=\"pick\"></div><details class=\"all\" open><summary>All of them as a table</summary>{}</details>\
         <script type=\"application/json\">{}</script></section>",
        tips.text(&browser.title, 160),
        tips.text(&browser.note, 1200),
        more(lost, "sample", "samples"),
        browser.table(n_shown).html(tips),
        data
    )
}

/// The digest by which a policy names a script or a style sheet.
fn hash(text: &str) -> String {
    let hex = digest(text.as_bytes());
    let bytes = (0..hex.len() / 2).filter_map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok());
    base64(&bytes.collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests;
