//! The program `mayhap`: builds, queries and serves membership filters.
//!
//! One file per command. Each file has the command's arguments and a `run` function, which writes to the stream it is
//! given and returns every failure as a [`CliError`]. Only this file handles the standard streams, the exit codes and
//! the `mayhap: …` line on standard error.
#![forbid(unsafe_code)]

mod bench;
mod build;
mod change;
mod check;
mod color;
mod completions;
mod convert;
mod error;
mod explain;
mod file_lock;
mod filling;
mod filter_file;
mod hashed_already;
mod health;
mod in_order;
mod info;
mod input;
mod interrupt;
mod item_form;
mod kind_name;
mod man;
mod merge;
mod module;
mod needs_args;
mod output;
mod place;
mod plan;
mod progress;
mod pull;
mod push;
mod remote;
mod remote_filter;
mod repair;
mod saved;
mod serve;
mod sniff;
mod target;
mod uniq;
mod verify;
mod whole_file;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::error::CliError;

/// Membership filters: has this item been seen before? "No" is certain. "Maybe" can be wrong; you choose how often.
#[derive(Parser)]
#[command(name = "mayhap", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Exit codes: 0 success, or the answer is maybe; 1 the answer is no; 2 error (one
line on standard error); 130 interrupted.

Examples:
  mayhap serve                                     run a server for Redis clients
  mayhap plan --items 1e9 --fpr 1%                 choose a kind of filter and its size
  mayhap build seen.mayhap urls.txt.gz             build a filter from these lines
  mayhap check seen.mayhap more.txt                print lines that are maybe in it
  mayhap check -v seen.mayhap more.txt             print lines that are certainly not in it
  mayhap uniq urls.txt > distinct.txt              print every line once
  mayhap info seen.mayhap                          show its fill and false-positive rate
  mayhap push seen.mayhap redis://host:6399/seen   copy it into a running server
  mayhap bench urls.txt                            measure every kind on your file
  mayhap man --dir ~/.local/share/man/man1         install the manual pages")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    color: color::ColorArgs,
}

#[derive(Subcommand)]
enum Verb {
    Serve(serve::Serve),
    Plan(plan::Plan),
    Build(build::Build),
    Add(change::Add),
    Remove(change::Remove),
    Check(check::Check),
    Uniq(uniq::Uniq),
    Info(info::Info),
    Explain(explain::Explain),
    Verify(verify::Verify),
    Merge(merge::Merge),
    Convert(convert::Convert),
    Sniff(sniff::Sniff),
    Push(push::Push),
    Pull(pull::Pull),
    Module(module::Module),
    Repair(repair::Repair),
    Bench(bench::Bench),
    Completions(completions::Completions),
    Man(man::Man),
}

/// The result of a command, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Success; if the command asked a question, the answer is maybe.
    Yes,
    /// The answer is no.
    No,
}

/// The exit code that grep uses for "no line selected".
const NO: u8 = 1;
/// The exit code that grep uses for errors.
const ERROR: u8 = 2;
/// The exit code that shells use for programs ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    color::choose(std::env::args_os());
    let done = match Cli::try_parse() {
        Ok(cli) => interrupt::listen().map_err(CliError::from).and_then(|()| run(&cli.verb)),
        Err(error) => print_help_or_fail(&error).map(|()| Verdict::Yes),
    };
    match done {
        Ok(Verdict::Yes) => ExitCode::SUCCESS,
        Ok(Verdict::No) => ExitCode::from(NO),
        Err(CliError::Interrupted) => ExitCode::from(INTERRUPTED),
        // The reader of the pipe has closed it, as `head` does: that is not an error.
        Err(CliError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error cannot be written either, the exit code alone has to do.
            let _ = writeln!(anstream::stderr(), "mayhap: {error}");
            ExitCode::from(ERROR)
        }
    }
}

fn run(verb: &Verb) -> Result<Verdict, CliError> {
    if !matches!(verb, Verb::Serve(_)) {
        interrupt::end_instead_of_aborting(ERROR)?;
    }
    match verb {
        Verb::Serve(serve) => serve.run().map(|()| Verdict::Yes),
        Verb::Explain(explain) => explain.run(),
        Verb::Uniq(uniq) => uniq.run().map(|()| Verdict::Yes),
        Verb::Plan(plan) => output::to_stdout(|out, width| plan.run(out, width)).map(|()| Verdict::Yes),
        Verb::Check(check) => check.run(),
        Verb::Info(info) => info.run(),
        Verb::Verify(verify) => verify.run(),
        Verb::Convert(convert) => convert.run(),
        Verb::Sniff(sniff) => sniff.run(),
        Verb::Push(push) => push.run(),
        Verb::Pull(pull) => pull.run(),
        Verb::Repair(repair) => repair.run(),
        Verb::Build(build) => build.run(),
        Verb::Add(add) => add.run(),
        Verb::Remove(remove) => remove.run(),
        Verb::Merge(merge) => merge.run(),
        Verb::Bench(bench) => output::to_stdout(|out, width| bench.run(out, width)).map(|()| Verdict::Yes),
        Verb::Completions(completions) => {
            output::to_stdout(|out, _| completions.run(out)).map(|()| Verdict::Yes)
        }
        Verb::Module(module) => output::to_stdout(|out, _| module.run(out)).map(|()| Verdict::Yes),
        Verb::Man(man) => output::to_stdout(|out, _| man.run(out)).map(|()| Verdict::Yes),
    }
}

/// Prints help and version texts. All other clap errors become a one-line [`CliError`].
fn print_help_or_fail(error: &clap::Error) -> Result<(), CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => output::unless_reader_left(error.print()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(CliError::Usage(
            "no command given; try for example `mayhap plan --items 1e9 --fpr 1%`, or see `mayhap --help`"
                .into(),
        )),
        _ => Err(CliError::from(error)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Clap checks a command only when it is used, and never in a release build.
    #[test]
    fn option_names_of_each_command_do_not_conflict() {
        Cli::command().debug_assert();
    }
}
