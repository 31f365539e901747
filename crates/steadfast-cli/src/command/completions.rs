//! `steadfast completions`: what the shell needs to complete a command.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print what your shell needs to complete commands and options
#[derive(Args)]
#[command(after_help = "\
Examples:
  bash   steadfast completions bash > ~/.local/share/bash-completion/completions/steadfast
  zsh    steadfast completions zsh > \"${fpath[1]}/_steadfast\"
  fish   steadfast completions fish > ~/.config/fish/completions/steadfast.fish")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let mut command = crate::Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "steadfast", &mut script);
    crate::output::bytes(&script);
    Ok(())
}
