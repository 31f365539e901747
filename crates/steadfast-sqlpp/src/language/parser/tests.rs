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
fn keyspaces_have_namespaces_parts_and_aliases() {
    let Statement::Select(select) =
        parse("SELECT d.* FROM default:`a-b`.s.`c` AS d USE KEYS ['k'] WHERE d.x = 1 LIMIT 2")
            .unwrap()
    else {
        panic!("it is a SELECT")
    };
    let source = select.source.unwrap();
    assert_eq!(source.keyspace.to_string(), "default:a-b.s.c");
    assert_eq!(source.alias, "d");
    assert!(source.keys.is_some() && select.filter.is_some() && select.limit.is_some());
}

#[test]
fn transactions_begin_and_end_in_several_words() {
    use super::super::TransactionStep as Step;
    for (text, wanted) in [
        ("BEGIN WORK", Step::Begin),
        ("begin", Step::Begin),
        (
            "START TRANSACTION ISOLATION LEVEL READ COMMITTED;",
            Step::Begin,
        ),
        ("COMMIT", Step::Commit),
        ("COMMIT TRAN", Step::Commit),
        ("ROLLBACK WORK", Step::Rollback),
        ("SAVEPOINT s1", Step::Savepoint("s1".to_owned())),
        (
            "ROLLBACK TRAN TO SAVEPOINT `s`",
            Step::RollbackTo("s".to_owned()),
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            Step::SetIsolation,
        ),
    ] {
        assert_eq!(parse(text), Ok(Statement::Transaction(wanted)), "{text}");
    }
    for bad in [
        "BEGIN 1",
        "SAVEPOINT",
        "ROLLBACK TO s",
        "START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "PREPARE COMMIT",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_only_a_real_service_has_is_unsupported() {
    for (text, what) in [
        ("SELECT a FROM b JOIN c ON 1", "JOIN"),
        ("SELECT a FROM b x LEFT JOIN c y ON 1", "LEFT"),
        ("SELECT a FROM b UNNEST c", "UNNEST"),
        ("SELECT * FROM ARRAY_RANGE(0, 0) AS x", "a function in FROM"),
        ("SELECT nope(1)", "the function NOPE"),
        ("SELECT CASE WHEN 1 THEN 2 END", "CASE"),
        ("SELECT (SELECT 1)", "a subquery"),
        ("SELECT EXISTS [1]", "EXISTS"),
        ("SELECT 1 UNION SELECT 2", "UNION"),
        ("MERGE INTO b", "MERGE"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
        ("CREATE FUNCTION f() { 1 }", "CREATE"),
        ("ALTER INDEX a ON b", "ALTER"),
        ("UPDATE STATISTICS FOR b", "UPDATE"),
        ("WITH a AS (1) SELECT a", "WITH"),
        ("UPDATE b SET META().expiration = 1", "a change of META()"),
    ] {
        assert_eq!(
            parse(text),
            Err(LanguageError::Unsupported(what.to_owned())),
            "{text}"
        );
    }
}

#[test]
fn invalid_statements_are_syntax_errors() {
    for text in [
        "",
        "SELEC 1",
        "SELECT",
        "SELECT FROM",
        "SELECT 1 FROM",
        "SELECT 1 1",
        "SELECT a FROM b ORDER a",
        "SELECT a FROM b GROUP a",
        "SELECT a LIKE",
        "SELECT a BETWEEN 1 OR 2",
        "SELECT UPPER()",
        "SELECT COUNT()",
        "UPDATE b",
        "UPDATE b SET",
        "UPDATE b SET a",
        "CREATE INDEX ON b(a)",
        "CREATE INDEX i ON b",
        "DROP INDEX",
        "BUILD INDEX b",
        "SELECT (1",
        "SELECT [1,",
        "SELECT {\"a\" 1}",
        "INSERT INTO b VALUES",
        "INSERT INTO b VALUES ('k')",
        "DELETE b",
        "SELECT 1; SELECT 2",
    ] {
        assert!(
            matches!(parse(text), Err(LanguageError::Syntax(_))),
            "{text}"
        );
    }
}

#[test]
fn random_lexemes_never_panic() {
    use rand::rngs::SmallRng;
    use rand::seq::IndexedRandom;
    use rand::{RngExt, SeedableRng};
    const PIECES: &[&str] = &[
        "SELECT ",
        "RAW ",
        "FROM ",
        "`b`",
        "b ",
        "USE KEYS ",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ".",
        "*",
        ":",
        "'k'",
        "\"",
        "'",
        "`",
        "\\",
        "$1",
        "$",
        "?",
        "1",
        "1e",
        "-",
        "NOT ",
        "IS ",
        "IN ",
        "NULL ",
        "META()",
        "COUNT(*)",
        "SUM(",
        "UPPER(",
        "LIKE ",
        "BETWEEN ",
        "ORDER BY ",
        "GROUP BY ",
        "UPDATE ",
        "SET ",
        "UNSET ",
        "CREATE INDEX ",
        "PRIMARY ",
        "ON ",
        "WITH ",
        "PREPARE ",
        "EXECUTE ",
        "p ",
        "AS ",
        "INSERT INTO ",
        "VALUES ",
        "DELETE ",
        "WHERE ",
        "LIMIT ",
        "RETURNING ",
        "=",
        "||",
        "--",
        "/*",
        "ü",
        ";",
        "\n",
    ];
    let seed = 4711;
    let mut random = SmallRng::seed_from_u64(seed);
    for round in 0..20_000 {
        let length = random.random_range(0..24);
        let text: String = (0..length)
            .filter_map(|_| PIECES.choose(&mut random))
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

#[test]
fn keys_of_an_index_are_shown_as_a_service_shows_them() {
    use super::super::statement::IndexChange;
    let text = "CREATE INDEX i ON b(n, d.`a b`.c, `d.a`, LOWER(n) DESC)";
    let Statement::Index(index) = parse(text).unwrap() else {
        panic!("it is an index")
    };
    let IndexChange::Create { keys, .. } = index.change else {
        panic!("it is created")
    };
    assert_eq!(keys, ["`n`", "((`d`.`a b`).`c`)", "`d.a`", "LOWER(n)"]);
}
