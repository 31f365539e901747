//! x
use steadfast_storm::verify::*;
fn main() {
    for c in verify(if std::env::args().count() > 1 {
        Depth::Full
    } else {
        Depth::Quick
    }) {
        println!("{c}");
    }
}
