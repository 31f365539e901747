//! Counts instructions, with valgrind's callgrind.
//!
//! A program cannot count its own instructions without the kernel's leave, and
//! shared machines do not give it. Callgrind counts them in a simulation
//! instead. The program is run twice with different numbers of calls; what it
//! does besides making them is the same both times and falls out of the
//! difference.
//!
//! The simulation has no vDSO, so that reading the clock takes the way through
//! the system call: the instructions on this side of the kernel are counted,
//! which are about as many as the vDSO's.

use std::fmt;
use std::io;
use std::process::Command;

const FEW: u64 = 1000;
const MANY: u64 = 3000;

/// Why there is no count.
#[derive(Clone, Debug)]
pub enum Unmeasured {
    /// Valgrind is not installed.
    NoValgrind,
    /// It was run, and this came of it.
    Failed(String),
}

impl fmt::Display for Unmeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmeasured::NoValgrind => f.write_str("no valgrind"),
            Unmeasured::Failed(why) => write!(f, "callgrind failed: {why}"),
        }
    }
}

/// The instructions of one call, given the arguments that make this very
/// program make that number of them and nothing else.
pub fn instructions_per_call(arguments: impl Fn(u64) -> Vec<String>) -> Result<f64, Unmeasured> {
    instructions_between(FEW, MANY, arguments)
}

/// The same for calls that take long, with numbers of calls of your own.
pub fn instructions_between(
    few: u64,
    many: u64,
    arguments: impl Fn(u64) -> Vec<String>,
) -> Result<f64, Unmeasured> {
    let (before, after) = (
        instructions(&arguments(few))?,
        instructions(&arguments(many))?,
    );
    let difference = after.checked_sub(before).ok_or_else(|| {
        Unmeasured::Failed(format!(
            "{many} calls took fewer instructions ({after}) than {few} did ({before})"
        ))
    })?;
    Ok(difference as f64 / (many - few) as f64)
}

fn instructions(arguments: &[String]) -> Result<u64, Unmeasured> {
    let failed = |why: String| Unmeasured::Failed(why);
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(arguments)
        .output();
    let output = match ran {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Unmeasured::NoValgrind);
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failed(format!("{}: {}", output.status, said.trim())));
    }
    collected(&said).ok_or_else(|| failed(format!("no count in: {}", said.trim())))
}

/// The count in callgrind's closing words, `==17== Collected : 123456`.
fn collected(said: &str) -> Option<u64> {
    said.lines()
        .find_map(|line| line.split_once("Collected :"))
        .and_then(|(_, count)| count.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::collected;

    #[test]
    fn the_count_is_read_from_callgrinds_closing_words() {
        let said = "==17== Events    : Ir\n==17== Collected : 2145\n==17== \n";
        assert_eq!(collected(said), Some(2145));
        assert_eq!(collected("==17== Events    : Ir\n"), None);
        assert_eq!(collected("==17== Collected : many\n"), None);
    }
}
