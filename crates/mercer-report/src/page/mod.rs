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
//! The page is at most [`Page::LIMIT`] bytes. Tables and lists have limits of their own, and figures and tables that do
//! not fit are named instead. The same data give the same bytes.
//!
//! There is no template engine: a page is a dozen of kinds of elements. There is no plotting library in the script, which
//! has 14 KB: the smallest common ones have 40 KB to 4 MB, and would draw again what [`Figure`](crate::Figure) has drawn.
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

mod drawing;
mod html;
mod samples;
mod table;

pub use drawing::Drawing;
pub use samples::{Browser, Example, Sample};
pub use table::Table;

use crate::figure::{Picture, base64, markup_json};
use html::{element, escape, facts, shortened};
use mercer_data::folder::digest;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Findings that are shown at once; the others can be unfolded.
const FINDINGS: usize = 6;

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

    fn html(&self) -> String {
        let mut text = format!("<figure id=\"{}\">", escape(&self.id));
        let last = self.steps.len().saturating_sub(1);
        if last > 0 {
            let names = markup_json(&self.steps.iter().map(|(name, _)| name.as_str()).collect());
            text.push_str(&format!(
                "<div class=\"slider\"><label>{} <input type=\"range\" min=\"0\" max=\"{last}\" value=\"{last}\" \
                 step=\"1\" data-names=\"{}\"></label> <output>{}</output></div>",
                escape(&self.slider),
                escape(&names),
                escape(&self.steps[last].0)
            ));
        }
        for (at, (_, drawing)) in self.steps.iter().enumerate() {
            let class = if at == last { "panels" } else { "panels later" };
            let panels = drawing.panels().iter().map(|panel| format!("<div class=\"panel\">{panel}</div>"));
            text.push_str(&format!("<div class=\"{class}\">{}</div>", panels.collect::<String>()));
        }
        let note =
            self.steps.iter().map(|(_, drawing)| drawing.note()).find(|note| !note.is_empty()).unwrap_or_default();
        let caption =
            [self.caption.as_str(), &note].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
        text.push_str(&element("figcaption", "", &caption));
        text.push_str("</figure>");
        text
    }
}

impl Section {
    /// A result of a job in a folder or file.
    pub fn new(job: impl Into<String>, place: impl Into<String>) -> Self {
        Self { job: job.into(), place: place.into(), ..Self::default() }
    }

    /// The parts that must be there, and those that may be left out, each with a name.
    fn parts(&self, at: usize) -> (String, Vec<(String, String)>, String) {
        let mut head = format!(
            "<section id=\"s{at}\" class=\"job\"><header><h2><span class=\"tag\">{}</span> {}</h2>",
            escape(&self.job),
            escape(&shortened(&self.place, 200))
        );
        head.push_str(&element("p", "asked", &self.asked));
        head.push_str("</header>");
        let sentences: String = self.sentences.iter().map(|text| element("li", "", &shortened(text, 800))).collect();
        if !sentences.is_empty() {
            head.push_str(&format!("<ul class=\"said\">{sentences}</ul>"));
        }
        let warnings: String = self.warnings.iter().map(|text| element("li", "", &shortened(text, 800))).collect();
        if !warnings.is_empty() {
            head.push_str(&format!("<div class=\"warning\"><h3>To be aware of</h3><ul>{warnings}</ul></div>"));
        }
        let figures = self.figures.iter().map(|figure| (format!("The figure “{}”", figure.caption), figure.html()));
        let tables =
            self.tables.iter().filter(|table| !table.is_empty()).map(|table| ("A table".to_owned(), table.html()));
        let parts = figures.chain(tables).collect();
        let mut foot = String::new();
        for (title, list) in [("All numbers", &self.facts), ("Settings", &self.settings), ("Run record", &self.record)]
        {
            if !list.is_empty() {
                foot.push_str(&format!("<details><summary>{title}</summary>{}</details>", facts(list)));
            }
        }
        if !self.command.is_empty() {
            foot.push_str(&format!(
                "<p class=\"command\"><span>Make it again</span> {}</p>",
                element("code", "", &shortened(&self.command, 400))
            ));
        }
        foot.push_str("</section>");
        (head, parts, foot)
    }
}

impl Card {
    fn html(&self) -> String {
        let mut text = format!("<article class=\"card\">{}", element("h3", "", &shortened(&self.title, 120)));
        if !self.pictures.is_empty() {
            let pictures = self.pictures.iter().map(|(picture, caption)| {
                format!(
                    "<li><img alt=\"\" src=\"data:image/png;base64,{}\">{}</li>",
                    base64(&picture.thumbnail(48).to_png()),
                    element("span", "", &shortened(caption, 30))
                )
            });
            text.push_str(&format!("<ul class=\"thumbs\">{}</ul>", pictures.collect::<String>()));
        }
        text.push_str(&facts(&self.facts));
        if let Some(table) = self.table.as_ref().filter(|table| !table.is_empty()) {
            text.push_str(&format!("<details><summary>Layers</summary>{}</details>", table.html()));
        }
        text.push_str("</article>");
        text
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
        let mut body = self.beginning();
        for (at, browser) in self.browsers.iter().enumerate() {
            body.push_str(&browser_html(browser, at));
        }
        let parts: Vec<_> = self.sections.iter().enumerate().map(|(at, section)| section.parts(at)).collect();
        // What must be there is counted first; figures and tables share the rest, in order.
        let fixed: usize = parts.iter().map(|(head, _, foot)| head.len() + foot.len()).sum();
        let mut room = Self::LIMIT.saturating_sub(body.len() + fixed + STYLE.len() + SCRIPT.len() + 4096);
        for (at, (head, optional, foot)) in parts.into_iter().enumerate() {
            body.push_str(&head);
            for (name, part) in optional {
                if part.len() <= room {
                    room -= part.len();
                    body.push_str(&part);
                } else {
                    let place = &self.sections[at].place;
                    let text = format!("{name} is left out, to keep this page small; it is in {place}.");
                    body.push_str(&element("p", "note", &text));
                    room = room.saturating_sub(text.len());
                }
            }
            body.push_str(&foot);
        }
        body.push_str(&format!("</main>{}", element("footer", "", &self.foot)));
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
            escape(&self.title)
        )
    }

    /// Title, findings and cards.
    fn beginning(&self) -> String {
        let mut text =
            String::from("<a class=\"skip\" href=\"#findings\">To the findings</a><header class=\"top\"><div>");
        text.push_str(&element("h1", "", &shortened(&self.title, 200)));
        text.push_str(&element("p", "", &shortened(&self.about, 400)));
        text.push_str("</div><nav aria-label=\"Sections\"><ul>");
        for (at, section) in self.sections.iter().enumerate() {
            text.push_str(&format!("<li><a href=\"#s{at}\">{}</a></li>", escape(&section.job)));
        }
        text.push_str("</ul></nav></header><main><section id=\"findings\"><h2>What was found</h2>");
        let one = |finding: &Finding| {
            let link = finding.link.as_ref().map_or(String::new(), |link| {
                // Identifiers of figures are those of their section with a name.
                let word = if link.contains('-') { "figure" } else { "section" };
                format!(" <a href=\"#{}\">{word}</a>", escape(link))
            });
            let (tag, said) =
                (element("span", "tag", &finding.from), element("span", "", &shortened(&finding.text, 800)));
            format!("<li>{said} <span class=\"from\">{tag}{link}</span></li>")
        };
        let (first, rest) = self.findings.split_at(self.findings.len().min(FINDINGS));
        text.push_str(&format!("<ol class=\"found\">{}</ol>", first.iter().map(one).collect::<String>()));
        if !rest.is_empty() {
            text.push_str(&format!(
                "<details><summary>{} more</summary><ol class=\"found more\" start=\"{}\">{}</ol></details>",
                rest.len(),
                first.len() + 1,
                rest.iter().map(one).collect::<String>()
            ));
        }
        text.push_str("</section>");
        if !self.cards.is_empty() {
            let cards: String = self.cards.iter().map(Card::html).collect();
            text.push_str(&format!(
                "<section id=\"cards\"><h2>What was looked at</h2><div class=\"cards\">{cards}</div></section>"
            ));
        }
        text
    }
}

fn browser_html(browser: &Browser, at: usize) -> String {
    format!(
        "<section class=\"browser\" id=\"samples{at}\"><h2>{}</h2><p class=\"asked\">{}</p>\
         <div class=\"pick\"></div><details class=\"all\" open><summary>All of them as a table</summary>{}</details>\
         <script type=\"application/json\">{}</script></section>",
        escape(&browser.title),
        escape(&browser.note),
        browser.table().html(),
        browser.data()
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
