use super::*;

#[test]
fn a_prepared_statement_keeps_its_text() {
    for (text, wanted) in [
        ("PREPARE SELECT 1", (None, "SELECT 1")),
        ("prepare p AS  SELECT $1 ;", (Some("p"), "SELECT $1")),
        ("PREPARE FORCE `p` FROM SELECT 1", (Some("p"), "SELECT 1")),
    ] {
        let Statement::Prepare { name, text } = parse(text).unwrap() else {
            panic!("{text} is a PREPARE")
        };
        assert_eq!((name.as_deref(), text.as_str()), wanted);
    }
    assert!(parse("PREPARE PREPARE SELECT 1").is_err());
}

#[test]
fn random_lexemes_never_panic() {
    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};
    const PIECES: &str = "SELECT ~RAW ~FROM ~`b`~b ~USE KEYS ~[~]~(~)~{~}~,~.~*~:~'k'~\"~'~`~\\~$1~$~?~1\
        ~1e~-~NOT ~IS ~IN ~NULL ~META()~COUNT(*)~SUM(~UPPER(~LIKE ~BETWEEN ~ORDER BY ~GROUP BY \
        ~UPDATE ~SET ~UNSET ~CREATE INDEX ~PRIMARY ~ON ~WITH ~PREPARE ~EXECUTE ~p ~AS \
        ~INSERT INTO ~VALUES ~DELETE ~WHERE ~LIMIT ~RETURNING ~=~||~--~/*~ü~;~\n";
    let pieces: Vec<&str> = PIECES.split('~').collect();
    let seed = 4711;
    let mut random = SmallRng::seed_from_u64(seed);
    for round in 0..20_000 {
        let length = random.random_range(0..24);
        let text: String = (0..length)
            .filter_map(|_| pieces.choose(&mut random))
            .copied()
            .collect();
        let parsed = std::panic::catch_unwind(|| parse(&text).is_ok());
        assert!(parsed.is_ok(), "seed {seed}, round {round}: {text:?}");
    }
}

#[test]
fn depth_is_bounded() {
    for open in ["(", "[", "-", "NOT ", "a["] {
        let text = format!("SELECT {}", open.repeat(100_000));
        assert!(parse(&text).is_err());
    }
    let chain = |length| parse(&format!("SELECT 1{}", "+1".repeat(length)));
    assert!(chain(MAX_LINKS).is_ok() && chain(100_000).is_err());
    assert!(parse(&format!("SELECT a{}", ".b".repeat(100_000))).is_err());
}
