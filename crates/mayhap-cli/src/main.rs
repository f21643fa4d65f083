//! The program `mayhap`: have I seen this before?
//!
//! One file per verb. Each has its arguments and `run`, which writes to what it is given and returns [`CliError`] for
//! everything that goes wrong; only here are streams, exit codes and `mayhap: …` on the standard error known.
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
mod quantity;
mod remote;
mod remote_filter;
mod repair;
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

/// Have I seen this before? A no is certain, a mayhap is wrong at most as often as you allow.
#[derive(Parser)]
#[command(name = "mayhap", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Exit codes: 0 yes, or all went well; 1 no; 2 error (one line on the standard
error); 130 interrupted.

Examples:
  mayhap serve                                     the server, for Redis clients
  mayhap plan --items 1e9 --fpr 1%                 which filter, how large?
  mayhap build seen.mayhap urls.txt.gz             a filter of these lines
  mayhap check seen.mayhap more.txt                lines that are mayhap in it
  mayhap check -v seen.mayhap more.txt             lines that certainly are not
  mayhap uniq urls.txt > distinct.txt              every line once
  mayhap info seen.mayhap                          how full, how often wrong
  mayhap push seen.mayhap redis://host:6399/seen   into a running server
  mayhap bench urls.txt                            measure every kind on your file
  mayhap man --dir ~/.local/share/man/man1         the manual")]
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

/// What a verb answers, for the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All went well, and where there was a question the answer is yes.
    Yes,
    /// The answer is no.
    No,
}

/// Grep's number for a no.
const NO: u8 = 1;
/// Grep's number for error.
const ERROR: u8 = 2;
/// What shells say of programs that end by Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    color::choose(std::env::args_os());
    let done = match Cli::try_parse() {
        Ok(cli) => interrupt::listen().map_err(CliError::from).and_then(|()| run(&cli.verb)),
        Err(error) => answer_instead(&error).map(|()| Verdict::Yes),
    };
    match done {
        Ok(Verdict::Yes) => ExitCode::SUCCESS,
        Ok(Verdict::No) => ExitCode::from(NO),
        Err(CliError::Interrupted) => ExitCode::from(INTERRUPTED),
        // Whoever read the answer has seen enough.
        Err(CliError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // If even this cannot be written there is nobody left to tell.
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

/// Help and version are answers; everything else clap says is an error, told in one line.
fn answer_instead(error: &clap::Error) -> Result<(), CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => output::unless_reader_left(error.print()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(CliError::Usage(
            "say what to do, for example `mayhap plan --items 1e9 --fpr 1%`; see `mayhap --help`".into(),
        )),
        _ => Err(CliError::from(error)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Clap looks at a verb only when it is used, and at none in a release build.
    #[test]
    fn no_two_options_of_a_verb_get_in_each_others_way() {
        Cli::command().debug_assert();
    }
}
