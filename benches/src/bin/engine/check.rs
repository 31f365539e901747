//! Holds the engine to its exact limits. Does not look at time, so that it says
//! the same on a busy machine as on an idle one.

use std::io::{self, Write};

use crate::contenders::named;
use crate::exact::{Exact, price_of_the_clock};
use crate::limits::LIMITS;

/// Whether every limit is kept; those that are not are named on the way. A
/// limit that could not be measured is not kept.
pub(crate) fn check(out: &mut impl Write) -> io::Result<bool> {
    let clock = price_of_the_clock();
    let mut kept = true;
    for limit in LIMITS {
        let contender = named(limit.contender).expect("limits are for contenders there are");
        let exact = Exact::measure(&contender, limit.scenario);
        for finding in limit.judge(&exact, &clock) {
            kept &= finding.is_met();
            writeln!(out, "{finding}")?;
        }
    }
    Ok(kept)
}
