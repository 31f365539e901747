use super::super::{Statement, parse};
use super::*;

fn select(text: &str, row: Option<&Row>) -> Result<Value, LanguageError> {
    let parameters = Parameters {
        random: || 7,
        positional: vec![json!("one"), json!([2])],
        named: BTreeMap::from([("name".to_owned(), json!({"a": 1}))]),
    };
    let Statement::Select(select) = parse(text)? else {
        panic!("{text} is a SELECT")
    };
    let scope = EvalScope {
        parameters: &parameters,
        row: row.map(|row| ("b", row)),
        group: None,
        alias: "",
    };
    scope.project(&select.projection)
}

#[test]
fn literals_parameters_and_operators() {
    for (text, wanted) in [
        ("SELECT 1=1", json!({"$1": true})),
        (
            "SELECT $1 AS x, ? y, ?",
            json!({"x": "one", "y": "one", "$1": [2]}),
        ),
        (
            "SELECT $name AS n, $name.a, $2[0] z",
            json!({"n": {"a": 1}, "a": 1, "z": 2}),
        ),
        (
            "SELECT RAW {'a': [1, null, missing], 'b': missing}",
            json!({"a": [1, null, null]}),
        ),
        ("SELECT RAW 1 + 2 * 3 - 4 / 2", json!(5)),
        ("SELECT RAW 1 / 2", json!(0.5)),
        ("SELECT RAW 1 / 0", json!(null)),
        (
            "SELECT RAW -(-9223372036854775807 - 1)",
            json!(9_223_372_036_854_775_808_f64),
        ),
        ("SELECT RAW 'a' || \"b\"", json!("ab")),
        ("SELECT RAW NOT 1 = 2 AND 'a' < 'b' OR false", json!(true)),
        ("SELECT RAW 2 IN [1, 2.0]", json!(true)),
        ("SELECT RAW 3 NOT IN [1, 2]", json!(true)),
        ("SELECT RAW null = 1", json!(null)),
        ("SELECT RAW null IS NULL", json!(true)),
        ("SELECT RAW missing IS NOT MISSING", json!(false)),
        ("SELECT RAW 1 < 'a'", json!(null)),
        ("SELECT RAW 7 % 4", json!(3)),
        ("SELECT RAW 'abc' LIKE 'a%'", json!(true)),
        ("SELECT RAW 'abc' LIKE '_b_'", json!(true)),
        ("SELECT RAW 'abc' NOT LIKE '%b'", json!(true)),
        ("SELECT RAW 'a%c' LIKE 'a\\\\%c'", json!(true)),
        ("SELECT RAW 'abc' LIKE 'a\\\\%c'", json!(false)),
        ("SELECT RAW '' LIKE '%%'", json!(true)),
        ("SELECT RAW 1 LIKE '%'", json!(null)),
        ("SELECT RAW 2 BETWEEN 1 AND 2 AND true", json!(true)),
        ("SELECT RAW 3 NOT BETWEEN 1 AND 2", json!(true)),
        ("SELECT RAW UPPER('a') || LOWER('B')", json!("Ab")),
        ("SELECT RAW IFMISSINGORNULL(missing, null, 2)", json!(2)),
        ("SELECT RAW IFMISSING(missing, null)", json!(null)),
        ("SELECT RAW ROUND(2.6) + LENGTH('ab')", json!(5)),
        ("SELECT RAW TYPE(missing)", json!("missing")),
    ] {
        assert_eq!(select(text, None).unwrap(), wanted, "{text}");
    }
}

#[test]
fn fields_and_elements_of_documents_are_read() {
    let row = Row {
        key: "k".into(),
        cas: 7,
        flags: 0,
        expiry: 0,
        value: json!({"a": {"x": [10, 20]}, "n": null}),
    };
    for (text, wanted) in [
        ("SELECT *", json!({"b": {"a": {"x": [10, 20]}, "n": null}})),
        ("SELECT b.*", json!({"a": {"x": [10, 20]}, "n": null})),
        (
            "SELECT META().id, META(b).cas AS c",
            json!({"id": "k", "c": 7}),
        ),
        (
            "SELECT a.x[-1] AS last, b.a.x[9], nope",
            json!({"last": 20}),
        ),
        (
            "SELECT RAW n IS NULL AND nope IS MISSING AND n IS NOT VALUED",
            json!(true),
        ),
    ] {
        assert_eq!(select(text, Some(&row)).unwrap(), wanted, "{text}");
    }
}

#[test]
fn expressions_without_a_value_report_the_reason() {
    for (text, part) in [
        ("SELECT $3", "positional parameter $3"),
        ("SELECT $0", "positional parameter $0"),
        ("SELECT $other", "named parameter $other"),
        ("SELECT field", "Ambiguous reference"),
        ("SELECT *", "Ambiguous reference"),
        ("SELECT META()", "needs a keyspace"),
    ] {
        let error = select(text, None).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}
