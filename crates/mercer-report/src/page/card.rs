//! Cards: what was looked at.

use super::Card;
use super::html::{Tips, escape, shortened};
use crate::figure::base64;

impl Card {
    pub(super) fn html(&self, tips: &Tips) -> String {
        let mut text = format!("<article class=\"card\">{}", tips.element("h3", "", &self.title, 120));
        if !self.pictures.is_empty() {
            let pictures = self.pictures.iter().map(|(picture, caption)| {
                format!(
                    "<li><img alt=\"\" src=\"data:image/png;base64,{}\">{}</li>",
                    base64(&picture.thumbnail(48).to_png()),
                    tips.element("span", "", caption, 20)
                )
            });
            text.push_str(&format!("<ul class=\"thumbs\">{}</ul>", pictures.collect::<String>()));
        }
        if !self.texts.is_empty() {
            let texts = self.texts.iter().map(|(own, caption)| {
                let caption = escape(&shortened(caption, 30));
                format!("<li><q>{}</q> <span>{caption}</span></li>", tips.text(own, 160))
            });
            text.push_str(&format!("<ul class=\"texts\">{}</ul>", texts.collect::<String>()));
        }
        text.push_str(&tips.facts(&self.facts));
        if let Some(table) = self.table.as_ref().filter(|table| !table.is_empty()) {
            text.push_str(&format!("<details><summary>Layers</summary>{}</details>", table.html(tips)));
        }
        text.push_str("</article>");
        text
    }
}
