//! `steadfast man`: writes manual pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::exit::usage;

/// Write the manual pages of all commands into a directory
#[derive(Args)]
#[command(after_help = "\
Example:
  steadfast man ~/.local/share/man/man1    and then: man steadfast-load")]
pub(crate) struct ManArgs {
    /// The directory. It is created if it is missing
    directory: PathBuf,
}

pub(crate) fn run(args: ManArgs) -> anyhow::Result<()> {
    let pages = fs::create_dir_all(&args.directory)
        .and_then(|()| clap_mangen::generate_to(crate::CommandLine::command(), &args.directory));
    pages.map_err(|error| {
        let name = args.directory.display();
        usage(format_args!("cannot write to {name}: {error}"))
    })
}
