//! Standard output for results, standard error for everything else.

use crate::arguments::Common;
use crate::progress::Bar;
use crate::visible;
use clap::builder::styling::{AnsiColor, Style};
use mercer::job::{Destination, Job, Opened, Outcome};
use mercer::run::Context;
use mercer::spec::{Inputs, Opening};
use mercer::{Error, Json};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The plan of a job.
type PlanOf<J> = <<J as Job>::Opened as Opened>::Plan;

/// The outcome of a job.
type OutcomeOf<J> = Outcome<<<J as Job>::Opened as Opened>::Findings>;

/// Where and how a command prints.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    /// Print results as JSON.
    pub(crate) json: bool,
    /// Print long lists in full.
    pub(crate) verbose: bool,
    bar: Bar,
    context: Context,
    inputs: Inputs,
    /// Whether a result was printed. A later error must not be printed as a second JSON document.
    told: Arc<AtomicBool>,
    colour: bool,
    /// What was printed, if nothing is to be printed.
    captured: Option<Arc<Mutex<String>>>,
}

impl Console {
    pub(crate) fn new(common: &Common) -> Result<Self, Error> {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|text| text.is_empty());
        let bar = Bar::new(common.quiet);
        let mut context = Context::listening(bar.clone());
        if let Some(bytes) = common.memory {
            context = context.with_memory(bytes);
        }
        if let Some(threads) = common.threads {
            let given = context.with_threads(threads.get());
            context = given.map_err(|error| Error::new(format!("--threads: {error}")))?;
        }
        Ok(Self {
            json: common.json,
            verbose: common.verbose,
            bar,
            context,
            inputs: Inputs::none(),
            told: Arc::default(),
            colour,
            captured: None,
        })
    }

    /// A console that prints nothing and keeps the result, as JSON.
    pub(crate) fn embedded(inputs: Inputs, context: Context) -> Self {
        Self {
            json: true,
            verbose: true,
            bar: Bar::new(true),
            context,
            inputs,
            told: Arc::default(),
            colour: false,
            captured: Some(Arc::default()),
        }
    }

    /// What an embedded console has kept.
    pub(crate) fn into_captured(self) -> String {
        let kept = self.captured.map(|kept| kept.lock().unwrap_or_else(PoisonError::into_inner).clone());
        kept.unwrap_or_default()
    }

    /// Prints a result. A reader that stops early (`| head`) is not an error.
    pub(crate) fn print(&self, text: &str) -> Result<(), Error> {
        self.write(&visible::text(text))
    }

    fn write(&self, text: &str) -> Result<(), Error> {
        if let Some(kept) = &self.captured {
            kept.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
            return Ok(());
        }
        self.bar.clear();
        let mut out = std::io::stdout().lock();
        let newline: &str = if text.ends_with('\n') { "" } else { "\n" };
        match write!(out, "{text}{newline}").and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Error::with_code("io", format!("standard output: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Prints a result as JSON or as text, as requested.
    pub(crate) fn result(&self, value: &impl Json, text: impl FnOnce() -> String) -> Result<(), Error> {
        self.told.store(true, Ordering::Relaxed);
        if self.json { self.json_text(value) } else { self.print(&text()) }
    }

    fn json_text(&self, value: &impl Json) -> Result<(), Error> {
        self.write(&visible::json(&value.json()?))
    }

    /// Runs a job and prints its outcome, which is returned. A dry run prints the plan and returns nothing.
    pub(crate) fn perform<J: Job>(
        &self,
        job: &J,
        destination: &Destination,
        plan: impl FnOnce(&PlanOf<J>) -> String,
        text: impl FnOnce(&OutcomeOf<J>) -> String,
    ) -> Result<Option<OutcomeOf<J>>, Error> {
        let opened = job.open(destination, self.opening())?;
        if destination.dry_run {
            self.result(opened.plan(), || plan(opened.plan()))?;
            return Ok(None);
        }
        let outcome = opened.run(&self.context)?;
        self.result(&outcome, || text(&outcome))?;
        Ok(Some(outcome))
    }

    /// The context of the command's work.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The arguments for opening a job.
    pub(crate) fn opening(&self) -> Opening<'_> {
        Opening { inputs: &self.inputs, context: &self.context }
    }

    /// Prints a line if the work takes long.
    pub(crate) fn slow_line(&self, text: &str) {
        self.bar.slow_line(text);
    }

    /// Prints why a command failed, also as JSON if results are printed as JSON.
    pub(crate) fn fail(&self, error: &Error) {
        self.bar.clear();
        let error = error.rendered(setting);
        if self.json && !self.told.load(Ordering::Relaxed) {
            // Nobody may be listening.
            let _ = self.json_text(&error.document());
        }
        let mut text = format!("{} {}\n", self.paint("error:", AnsiColor::Red), visible::text(error.message()));
        for hint in error.hints() {
            text += &format!("  {} {}\n", self.paint("try:", AnsiColor::Green), visible::text(&hint.text));
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

/// A setting as a command-line flag.
pub(crate) fn setting(name: &str) -> String {
    match name {
        "out" => "-o".to_owned(),
        "k" => "-k".to_owned(),
        other => format!("--{other}"),
    }
}
