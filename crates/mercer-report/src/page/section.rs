//! Sections: a result of a job, with its figures and tables.

use super::html::{NAME, Tips, element, escape, shortened};
use super::{FigureBlock, Section};
use crate::figure::markup_json;
use serde_json::json;

/// Sentences and warnings of a section; the result has all of them.
const SAID: usize = 40;

/// What of a section may be left out, in the order in which room is given: everything of the first rank before anything of
/// the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    Said,
    Record,
    Drawn,
}

/// A part of a section.
pub(super) struct Part {
    pub(super) rank: Rank,
    /// What it is called if there is no room for it.
    pub(super) name: String,
    pub(super) html: String,
}

impl FigureBlock {
    fn html(&self, tips: &Tips) -> String {
        let mut text = format!("<figure id=\"{}\">", escape(&self.id));
        let last = self.steps.len().saturating_sub(1);
        if last > 0 {
            let names: Vec<String> = self.steps.iter().map(|(name, _)| shortened(name, NAME)).collect();
            text.push_str(&format!(
                "<div class=\"slider\"><label>{} <input type=\"range\" min=\"0\" max=\"{last}\" value=\"{last}\" \
                 step=\"1\" data-names=\"{}\"></label> <output>{}</output></div>",
                escape(&shortened(&self.slider, NAME)),
                escape(&markup_json(&json!(names))),
                escape(&names[last])
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
        text.push_str(&tips.element("figcaption", "", &caption, 600));
        text.push_str("</figure>");
        text
    }
}

impl Section {
    /// The beginning, which is always there.
    pub(super) fn head(&self, at: usize, tips: &Tips) -> String {
        format!(
            "<section id=\"s{at}\" class=\"job\"><header><h2><span class=\"tag\">{}</span> {}</h2>{}</header>",
            escape(&shortened(&self.job, 40)),
            tips.text(&self.place, 160),
            tips.element("p", "asked", &self.asked, 400)
        )
    }

    /// Everything else, in the order of the page.
    pub(super) fn parts(&self, tips: &Tips) -> Vec<Part> {
        let part = |rank, name: &str, html| Part { rank, name: name.to_owned(), html };
        let list = |texts: &[String]| -> String {
            let more = texts.len().saturating_sub(SAID);
            let more = if more > 0 { element("li", "", &format!("and {more} more")) } else { String::new() };
            texts.iter().take(SAID).map(|text| tips.element("li", "", text, 800)).collect::<String>() + &more
        };
        let mut parts = Vec::new();
        if !self.sentences.is_empty() {
            let html = format!("<ul class=\"said\">{}</ul>", list(&self.sentences));
            parts.push(part(Rank::Said, "what was found", html));
        }
        if !self.warnings.is_empty() {
            let html = format!("<div class=\"warning\"><h3>To be aware of</h3><ul>{}</ul></div>", list(&self.warnings));
            parts.push(part(Rank::Said, "warnings", html));
        }
        for note in self.notes.iter().take(SAID) {
            parts.push(part(Rank::Said, "a note", tips.element("p", "note", note, 800)));
        }
        for figure in &self.figures {
            let name = format!("the figure “{}”", shortened(&figure.caption, NAME));
            parts.push(part(Rank::Drawn, &name, figure.html(tips)));
        }
        for table in self.tables.iter().filter(|table| !table.is_empty()) {
            let name = format!("the table “{}”", shortened(table.title(), NAME));
            parts.push(part(Rank::Drawn, &name, table.html(tips)));
        }
        for (title, facts) in [("All numbers", &self.facts), ("Settings", &self.settings), ("Run record", &self.record)]
        {
            if !facts.is_empty() {
                let html = format!("<details><summary>{title}</summary>{}</details>", tips.facts(facts));
                parts.push(part(Rank::Record, &title.to_lowercase(), html));
            }
        }
        if !self.command.is_empty() {
            let code = tips.element("code", "", &self.command, 400);
            let html = format!("<p class=\"command\"><span>Make it again</span> {code}</p>");
            parts.push(part(Rank::Record, "the command", html));
        }
        parts
    }

    /// Names what had no room. The page counts with at most [`Self::NOTE`] bytes for it.
    pub(super) fn left_out(&self, names: &[String]) -> String {
        if names.is_empty() {
            return String::new();
        }
        let (all, place) = (shortened(&names.join(", "), 240), shortened(&self.place, 60));
        let text = format!("Left out, to keep this page small: {all}. It is in {place}.");
        element("p", "note", &text)
    }

    /// The most bytes of what [`Self::left_out`] writes: every character may take six.
    pub(super) const NOTE: usize = 6 * 400;
}
