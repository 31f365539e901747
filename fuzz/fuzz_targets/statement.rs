//! SQL++ statements.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| steadfast_sqlpp::fuzzing::statement(text));
