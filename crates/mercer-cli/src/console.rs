//! Standard output for results, standard error for everything else.

use crate::arguments::Common;
use crate::failure::{Failure, cannot_write};
use crate::progress::Bar;
use crate::visible;
use clap::builder::styling::{AnsiColor, Style};
use mercer::net::Network;
use mercer::run::Context;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};

/// Where and how a command speaks to its user.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    /// Results are wanted as JSON.
    pub(crate) json: bool,
    /// Long lists are wanted as a whole.
    pub(crate) verbose: bool,
    bar: Bar,
    context: Context,
    colour: bool,
}

impl Console {
    pub(crate) fn new(common: &Common) -> Result<Self, Failure> {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|text| text.is_empty());
        let bar = Bar::new(common.quiet);
        let mut context = Context::listening(bar.clone());
        if let Some(bytes) = common.memory {
            context = context.with_memory(bytes);
        }
        if let Some(threads) = common.threads {
            let given = context.with_threads(threads.get());
            context = given.map_err(|error| Failure::new(format!("--threads: {error}")))?;
        }
        Ok(Self { json: common.json, verbose: common.verbose, bar, context, colour })
    }

    /// Prints a result. A reader that has seen enough (`| head`) is no error.
    pub(crate) fn print(&self, text: &str) -> Result<(), Failure> {
        self.write(&visible::text(text))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        self.bar.clear();
        let mut out = std::io::stdout().lock();
        let newline: &str = if text.ends_with('\n') { "" } else { "\n" };
        match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_write("standard output", &error)),
            _ => Ok(()),
        }
    }

    /// Prints a result as JSON or as text, whichever was asked for.
    pub(crate) fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if !self.json {
            return self.print(&text());
        }
        let json = serde_json::to_string_pretty(value);
        let json = json.map_err(|error| Failure::new(format!("the result cannot be written as JSON: {error}")))?;
        self.write(&visible::json(&json))
    }

    /// Says something in passing, unless the user wants quiet.
    pub(crate) fn note(&self, text: &str) {
        self.bar.line(text);
    }

    /// Says how the parameters of a file differ from its module's, where a result depends on them.
    pub(crate) fn remark(&self, network: Option<&Network>) {
        for text in network.map(Network::remarks).unwrap_or_default() {
            self.note(&format!("note: {text}"));
        }
    }

    /// The context of the command's work.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// A line for work that takes long.
    pub(crate) fn slow_line(&self, text: &str) {
        self.bar.slow_line(text);
    }

    /// Says why a command ends without success.
    pub(crate) fn fail(&self, failure: &Failure) {
        self.bar.clear();
        let mut text = format!("{} {}\n", self.paint("error:", AnsiColor::Red), visible::text(failure.message()));
        if let Some(hint) = failure.hint_text() {
            text += &format!("  {} {}\n", self.paint("try:", AnsiColor::Green), visible::text(hint));
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn paint(&self, text: &str, colour: AnsiColor) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = Style::new().fg_color(Some(colour.into())).bold();
        format!("{style}{text}{style:#}")
    }
}
