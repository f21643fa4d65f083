//! The program `mayhap`: have I seen this before?
//!
//! One file per verb. Each has its arguments and `run`, which writes to what it is given and returns [`Trouble`] for
//! everything that goes wrong; only here are streams, exit codes and `mayhap: …` on the standard error known.
#![forbid(unsafe_code)]

mod output;
mod plan;
mod quantity;
mod trouble;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::trouble::Trouble;

/// Have I seen this before? A no is certain, a mayhap is wrong at most as often as you allow.
#[derive(Parser)]
#[command(name = "mayhap", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 all went well, 2 trouble (one line on the standard error).")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Plan(plan::Plan),
}

/// Grep's number for trouble; 1 is kept for answers.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(Cli { verb: Verb::Plan(plan) }) => output::to_stdout(|out, width| plan.run(out, width)),
        Err(error) => answer_instead(&error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            // If even this cannot be written there is nobody left to tell.
            let _ = writeln!(anstream::stderr(), "mayhap: {trouble}");
            ExitCode::from(TROUBLE)
        }
    }
}

/// Help and version are answers; everything else clap says is trouble, told in one line.
fn answer_instead(error: &clap::Error) -> Result<(), Trouble> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => output::unless_reader_left(error.print()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Err(Trouble::Usage(
            "say what to do, for example `mayhap plan --items 1e9 --fpr 1%`; see `mayhap --help`".into(),
        )),
        _ => Err(Trouble::from(error)),
    }
}
