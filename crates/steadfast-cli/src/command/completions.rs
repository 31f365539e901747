//! `steadfast completions`: prints completion scripts for shells.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a script that completes commands and options in your shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  bash   steadfast completions bash > ~/.local/share/bash-completion/completions/steadfast
  zsh    steadfast completions zsh > \"${fpath[1]}/_steadfast\"
  fish   steadfast completions fish > ~/.config/fish/completions/steadfast.fish")]
pub(crate) struct CompletionsArgs {
    /// Your shell
    shell: Shell,
}

pub(crate) fn run(args: CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let mut command = crate::CommandLine::command();
    clap_complete::generate(args.shell, &mut command, "steadfast", &mut script);
    crate::output::bytes(&script);
    Ok(())
}
