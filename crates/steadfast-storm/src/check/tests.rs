use super::*;

fn check(expect: &str) -> Result<CheckedFleet, InvalidCheck> {
    let text = format!(
        r#"
        clients = [5, 500]
        seeds = 2
        policies = ["no-retry", "guidance"]

        [[scenario]]
        name = "small"
        rate_per_s = 100.0
        duration_s = 90.0
        service = {{ workers = 1, queue_limit = 250 }}
        faults = [{{ from_s = 20.0, until_s = 40.0, effect = {{ slow = {{ factor = 3.0 }} }} }}]

        {expect}
        "#
    );
    toml::from_str::<FleetCheck>(&text)
        .expect("it is TOML")
        .run()
}

#[test]
fn an_expectation_holds_for_the_cases_that_it_is_about() {
    let outcome = check(
        r#"
        [[expect]]
        policy = "guidance"
        recovers = 0.95
        within_s = 20.0
        load_at_most = 1.5
        "#,
    )
    .expect("it is valid");
    let holds: Vec<bool> = outcome.findings.iter().map(|it| it.holds).collect();
    // Two expectations for five clients, and two for five hundred.
    assert_eq!(holds, [true, true, false, false], "{:?}", outcome.findings);
    assert_eq!(outcome.broken.len(), 1);
    assert!(
        outcome.findings[2]
            .to_string()
            .contains("small, guidance, 500 clients: 0 %")
    );
}

#[test]
fn a_check_can_demand_what_a_lone_client_notices() {
    let text = r#"
        policies = ["load-aware", "no-retry"]

        [[expect]]
        lone_client = { first_error = 0.99, steady = 0.99 }
    "#;
    let check: FleetCheck = toml::from_str(text).expect("it is TOML");
    let outcome = check.run().expect("it is valid");
    let holds: Vec<bool> = outcome.findings.iter().map(|it| it.holds).collect();
    // Two numbers of each policy. Without retries the first error is felt.
    assert_eq!(holds, [true, true, false, true], "{:?}", outcome.findings);
    let text = outcome.findings[2].to_string();
    let expected = "no-retry: first_error: 0.0 %, expected at least 99.0 %";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_check_of_nothing_is_an_error() {
    // A wrong name, another size, no limit: also beside an expectation that is right.
    for wrong in [
        "policy = 'unknown'\nrecovers = 0.9",
        "scenario = 'unknown'\nrecovers = 0.9",
        "clients = 50\nrecovers = 0.9",
        "policy = 'guidance'\nwithin_s = 20.0",
    ] {
        let right = "[[expect]]\nload_at_most = 9.0\n";
        let error = check(&format!("{right}[[expect]]\n{wrong}")).expect_err(wrong);
        assert!(error.to_string().contains("expectation 2"), "{error}");
    }
    let error = check("").expect_err("there is none");
    assert!(error.to_string().contains("[[expect]]"), "{error}");
    let unknown: FleetCheck = toml::from_str("scenarios = ['unknown']").expect("it is TOML");
    let error = unknown.run().expect_err("there is no such scenario");
    assert!(error.to_string().contains("unknown"));
}
