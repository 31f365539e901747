//! `steadfast man`: writes manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command, CommandFactory};
use clap_mangen::Man;

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
    let mut command = crate::CommandLine::command().disable_help_subcommand(true);
    command.build();
    let pages =
        fs::create_dir_all(&args.directory).and_then(|()| write_pages(&command, &args.directory));
    pages.map_err(|error| {
        let name = args.directory.display();
        usage(format_args!("cannot write to {name}: {error}"))
    })
}

/// Writes the page of a command, and those of its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    writeln!(
        page,
        ".SH SYNOPSIS\n{}",
        synopsis(command).replace('-', "\\-")
    )?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if command.get_after_help().is_some() {
        man.render_extra_section(&mut page)?;
    }
    fs::write(directory.join(man.get_filename()), page)?;
    command
        .get_subcommands()
        .try_for_each(|command| write_pages(command, directory))
}

/// Returns the name, the options with the names of their values, and the arguments.
fn synopsis(command: &Command) -> String {
    let mut text = command.get_bin_name().unwrap_or_default().to_owned();
    let is_option = |argument: &&Arg| !argument.is_positional();
    for option in command.get_arguments().filter(is_option) {
        text += &match option.is_required_set() {
            true => format!(" {option}"),
            false => format!(" [{option}]"),
        };
    }
    for argument in command.get_positionals() {
        text += &format!(" {argument}");
    }
    if command.has_subcommands() {
        text += match command.is_subcommand_required_set() {
            true => " <COMMAND>",
            false => " [COMMAND]",
        };
    }
    text
}
