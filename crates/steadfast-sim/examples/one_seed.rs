//! Ten seconds of load in virtual time, from one seed.
//!
//!     cargo run --release -p steadfast-sim --example one_seed
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use steadfast_sim::{RunPlan, run};

fn main() -> anyhow::Result<()> {
    let plan = RunPlan::new(4711, Duration::from_secs(10), 1000);
    println!("{}", serde_json::to_string_pretty(&plan)?);
    let outcome = run(&plan)?;
    match outcome.symptom() {
        None => println!("every promise held"),
        Some(symptom) => println!("broken: {symptom}"),
    }
    Ok(())
}
