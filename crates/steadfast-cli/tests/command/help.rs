//! Help, completions, manual pages and colours.

use crate::support::{command, run, steadfast};

const COMMANDS: [&str; 18] = [
    "audit",
    "cluster",
    "control",
    "fault",
    "load",
    "simulate",
    "storm",
    "topology",
    "explain",
    "doctor",
    "get",
    "upsert",
    "insert",
    "replace",
    "remove",
    "query",
    "completions",
    "man",
];

#[test]
fn every_command_is_listed_and_has_examples() {
    let all = steadfast(&["--help"]).stdout;
    for name in COMMANDS {
        assert!(all.contains(&format!("  {name}")), "{name} is not in {all}");
        let help = steadfast(&[name, "--help"]).stdout;
        assert!(help.contains("Example"), "{name}: {help}");
    }
}

#[test]
fn completions_contain_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = steadfast(&["completions", shell]);
        assert!(script.ok());
        for name in COMMANDS {
            assert!(script.stdout.contains(name), "{shell}: {name}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    assert!(steadfast(&["man", pages.to_str().unwrap()]).ok());
    for name in COMMANDS {
        let page = std::fs::read_to_string(pages.join(format!("steadfast-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let page = std::fs::read_to_string(pages.join("steadfast-upsert.1")).unwrap();
    let synopsis = page
        .lines()
        .skip_while(|line| *line != ".SH SYNOPSIS")
        .nth(1);
    let synopsis = synopsis.unwrap().replace("\\-", "-");
    for part in [
        "steadfast upsert ",
        " [--user <NAME>]",
        " [--json]",
        " <KEY>",
        " [VALUE]",
    ] {
        assert!(synopsis.contains(part), "{part}: {synopsis}");
    }
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = steadfast(&["man", file.to_str().unwrap()]);
    assert_eq!(refused.status, 2, "{refused:?}");
}

#[test]
fn colours_are_for_terminals_or_on_request() {
    let arguments = ["explain", "kv", "get", "--in-flight"];
    let escape = |output: &str| output.contains('\u{1b}');
    assert!(!escape(&steadfast(&arguments).stdout));
    let mut forced = command(&arguments);
    forced.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    assert!(escape(&run(forced).stdout));
    let mut refused = command(&arguments);
    refused.env("CLICOLOR_FORCE", "0").env("NO_COLOR", "1");
    assert!(!escape(&run(refused).stdout));
}
