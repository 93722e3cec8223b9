//! Text for pages. All text of a page passes through [`escape`].

pub(super) use crate::figure::escape;

/// An element with a text; without a class if that is empty.
pub(super) fn element(name: &str, class: &str, text: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<{name}{class}>{}</{name}>", escape(text))
}

/// The beginning of a text, with an ellipsis if it is longer.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A list of names and texts.
pub(super) fn facts(facts: &[(String, String)]) -> String {
    let rows = facts.iter().map(|(name, text)| {
        format!("<div>{}{}</div>", element("dt", "", &shortened(name, 80)), element("dd", "", &shortened(text, 400)))
    });
    format!("<dl>{}</dl>", rows.collect::<String>())
}
