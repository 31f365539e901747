//! Two policies in a brownout, with fleets of two sizes and the same load.
//!
//!     cargo run --release -p steadfast-storm --example brownout
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use steadfast_storm::{Comparison, InvalidScenario, Policy, scenarios};

fn main() -> Result<(), InvalidScenario> {
    let scenario = scenarios::brownout();
    let policies = [Policy::guidance(), Policy::load_aware()];
    let fleets = [50, 5000].map(|clients| {
        let scenario = scenario.clone().with_clients(clients);
        scenario.compare(&policies, 0..2)
    });
    let fleets = fleets.into_iter().collect::<Result<_, _>>()?;
    println!("{}", Comparison::new(&scenario, fleets));
    Ok(())
}
