//! `mercer fit`: a machine on a kernel, learnt from samples and written to a folder.

mod machines;
mod report;
mod training;

use crate::console::Console;
use machines::*;
use mercer::Error;
use mercer::job::fit::MachineName;
use mercer::job::{Job, Opened};
use mercer::run::names::Named;
use training::TrainingOptions;

const EXAMPLES: &str = "\
Examples:
  mercer fit ridge --gram gram.npy --labels targets.npy -o machine
  mercer predict --from machine --data new.npy -o predictions.npy

`mercer fit MACHINE --help` lists the settings of a machine. A machine is fitted on a Gram matrix
(--gram), on features (--features) or on a kernel of samples (--data), which is computed in double
precision.

The folder holds all that predictions need: the machine, its kernel with the network, the training
samples and their preprocessing. It can be moved, and the original files can be deleted. The memory
that a fit needs is estimated first; a fit that needs more than --memory is refused. `mercer predict`
of a process writes variances beside the means, unless the process was fitted on --gram: rows of a
Gram matrix do not hold κ(x, x) of new samples.";

/// Fit a machine on a kernel: ridge, Gaussian process, logistic, support vectors, neighbours
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, subcommand_value_name = "MACHINE", subcommand_help_heading = "Machines")]
pub(crate) struct FitArguments {
    #[command(subcommand)]
    machine: Machine,
}

/// One line of the library's table.
fn about(machine: MachineName) -> &'static str {
    MachineName::CHOICES.iter().find(|(choice, ..)| *choice == machine).map_or("", |(.., help)| help)
}

/// Declares a subcommand per machine, with its name and its line of help from the library's table.
macro_rules! machines {
    ($($machine:ident),+) => {
        #[derive(Debug, clap::Subcommand)]
        enum Machine {
            $(#[command(
                name = MachineName::$machine.name(),
                about = about(MachineName::$machine),
                long_about = None,
                after_help = $machine::EXAMPLES
            )]
            $machine(Box<Fit<$machine>>),)+
        }

        impl FitArguments {
            pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
                match &self.machine {
                    $(Machine::$machine(fit) => fit.run(console)),+
                }
            }

            #[cfg(test)]
            fn spec(&self) -> mercer::job::fit::MachineSpec {
                match &self.machine {
                    $(Machine::$machine(fit) => fit.settings.spec()),+
                }
            }
        }
    };
}

with_all!(machines);

/// One machine: its own settings and the shared flags.
#[derive(Debug, clap::Args)]
struct Fit<S: Settings> {
    #[command(flatten)]
    settings: S,

    #[command(flatten)]
    training: TrainingOptions,
}

impl<S: Settings> Fit<S> {
    fn run(&self, console: &Console) -> Result<(), Error> {
        let job = self.training.job(self.settings.spec())?;
        let outcome = job.open(&self.training.destination(), console.opening())?.run(console.context())?;
        console.result(&outcome, || report::outcome(&outcome, &self.training.output.out))
    }
}

#[cfg(test)]
mod tests {
    use crate::arguments::Arguments;
    use clap::{CommandFactory, Parser};
    use mercer::job::fit::{MachineName, MachineSpec};
    use mercer::run::names::Named;

    /// Every machine of the library is a subcommand, and without flags its settings are the library's defaults.
    #[test]
    fn defaults_are_those_of_the_library() {
        for &(machine, name, _) in MachineName::CHOICES {
            let line = format!("mercer fit {name} --gram g.npy --labels y.npy -o m");
            let line = if machine == MachineName::Flow { line + " --time 3" } else { line };
            let arguments = Arguments::try_parse_from(line.split(' ')).unwrap();
            let crate::commands::Command::Fit(fit) = arguments.command else { panic!("{name}") };
            let mut expected = MachineSpec::from(machine);
            if let MachineSpec::Flow { time } = &mut expected {
                *time = Some(3.0);
            }
            assert_eq!(fit.spec(), expected);
        }
    }

    /// One line per setting of a machine.
    #[test]
    fn settings_are_short() {
        let mut command = Arguments::command();
        command.build();
        let fit = command.find_subcommand("fit").unwrap();
        for machine in fit.get_subcommands() {
            for setting in machine.get_arguments().filter(|own| own.get_help_heading() == Some("Machine")) {
                let help = setting.get_help().unwrap().to_string();
                assert!(help.len() <= 90, "{} {setting}: {help}", machine.get_name());
            }
        }
    }
}
