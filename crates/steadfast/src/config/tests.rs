use super::*;
use crate::backoff::{Backoff, Jitter};
use crate::budget::{Costs, Refund};
use crate::strategy::Described;

fn read(toml: &str) -> StrategyConfig {
    toml::from_str(toml).unwrap_or_else(|error| panic!("{toml}\n{error}"))
}

fn described(toml: &str) -> String {
    let strategy = read(toml).build().expect("it is valid");
    Described(&strategy).to_string()
}

fn rejected(toml: &str) -> String {
    let config = toml::from_str::<StrategyConfig>(toml);
    config.expect_err("it is invalid").to_string()
}

fn invalid_field(toml: &str) -> String {
    let error = read(toml).build().err().expect("a builder rejects it");
    error.field().to_owned()
}

#[test]
fn every_strategy_is_what_its_constructor_makes() {
    let of = |strategy: &dyn RetryStrategy| Described(strategy).to_string();
    let waiting = Standard::guidance().to_builder();
    let waiting = waiting.when_too_late(WhenTooLate::Wait);
    for (toml, expected) in [
        ("strategy = 'fail_fast'", of(&FailFast::new())),
        ("strategy = 'best_effort'", of(&BestEffort::default())),
        ("strategy = 'standard'", of(&Standard::guidance())),
        (
            "strategy = 'standard'\npreset = 'aws_2_0'",
            of(&Standard::aws_2_0()),
        ),
        (
            "strategy = 'standard'\npreset = 'aws_2_1'",
            of(&Standard::aws_2_1()),
        ),
        (
            "strategy = 'standard'\npreset = 'aws_2_1_dynamodb'",
            of(&Standard::aws_2_1_dynamodb()),
        ),
        ("strategy = 'load_aware'", of(&LoadAware::new())),
        (
            "strategy = 'load_aware'\nfleet = true\nmax_attempts = 2",
            of(&LoadAware::fleet().max_attempts(2).unwrap()),
        ),
        (
            "strategy = 'standard'\nwhen_too_late = 'wait'",
            of(&waiting.build().unwrap()),
        ),
        (
            "strategy = 'best_effort'\nwhen_too_late = 'fail_fast'",
            of(&BestEffort::default().when_too_late(WhenTooLate::FailFast)),
        ),
        (
            "strategy = 'adaptive'\nwhen_limited = 'fail_fast'",
            of(&Adaptive::new(Standard::guidance(), WhenLimited::FailFast)),
        ),
        (
            "strategy = 'best_effort'\nmax_attempts = 4\nbudget = {}",
            of(&BestEffort::default()
                .max_attempts(4)
                .unwrap()
                .with_budget(Budget::builder().build().unwrap())),
        ),
    ] {
        assert_eq!(described(toml), expected);
    }
}

#[test]
fn every_setting_has_its_effect() {
    let config = read(
        "strategy = 'standard'
         preset = 'aws_2_1'
         max_attempts = 7
         max_backoff = '3s'
         retry_after = { clamp = '2s' }
         retry_maybe = 'always'
         backoff = { shape = 'exponential', base = '10ms', factor = 3, cap = '9s', jitter = 'equal' }
         throttling_backoff = { shape = 'constant', delay = '1s' }
         [budget]
         capacity = 60
         initial = 30
         costs = { normal = 2, timeout = 4, throttling = 6 }
         refund = { last_cost_or = 1 }",
    );
    let StrategyConfig::Standard(standard) = &config else {
        panic!("it is a standard strategy");
    };
    assert_eq!(
        standard.retry_after,
        Some(RetryAfter::Clamp(Duration::from_secs(2)))
    );
    assert_eq!(standard.retry_maybe, Some(MaybeRule::Always));
    let built = standard.build().expect("it is valid");
    let text = Described(&built).to_string();
    assert!(text.contains("7 attempts"), "{text}");
    assert!(text.contains("10ms × 3ⁿ up to 3s, equal jitter"), "{text}");
    let budget = built.budget();
    let expected = Budget::builder()
        .capacity(60)
        .costs(Costs::new(2, 4, 6))
        .refund(Refund::LastCostOr(1))
        .build()
        .unwrap();
    assert_eq!(budget.to_string(), expected.to_string());
    assert_eq!(budget.level(), 30);
}

#[test]
fn a_budget_keeps_what_the_preset_says_of_the_rest() {
    let StrategyConfig::Standard(config) =
        read("strategy = 'standard'\npreset = 'aws_2_1'\nbudget = { capacity = 100 }")
    else {
        panic!("it is a standard strategy");
    };
    let expected = Standard::aws_2_1().budget().to_builder().capacity(100);
    let (built, expected) = (config.build().unwrap(), expected.build().unwrap());
    assert_eq!(built.budget().to_string(), expected.to_string());
}

#[test]
fn every_backoff_is_what_its_constructor_makes() {
    let ms = Duration::from_millis;
    for (toml, expected) in [
        ("shape = 'none'", Backoff::none()),
        (
            "shape = 'constant'\ndelay = '5ms'",
            Backoff::constant(ms(5)),
        ),
        (
            "shape = 'linear'\nfirst = '1ms'\nstep = '2ms'\ncap = '9ms'\njitter = 'full'",
            Backoff::linear(ms(1), ms(2), ms(9))
                .unwrap()
                .with_jitter(Jitter::Full),
        ),
        (
            "shape = 'exponential'\nbase = '1ms'\ncap = '9ms'\njitter = 'full_then_equal'",
            Backoff::exponential(ms(1), ms(9))
                .unwrap()
                .with_jitter(Jitter::FullThenEqual),
        ),
        ("shape = 'controlled'", Backoff::controlled()),
        (
            "shape = 'best_effort'\njitter = 'equal'",
            Backoff::best_effort().with_jitter(Jitter::Equal),
        ),
    ] {
        let config: BackoffConfig = toml::from_str(toml).unwrap();
        assert_eq!(config.build().unwrap().to_string(), expected.to_string());
    }
}

#[test]
fn an_unknown_field_is_named_at_every_level() {
    for (field, toml) in [
        ("attempts", "strategy = 'fail_fast'\nattempts = 1"),
        ("attempts", "strategy = 'best_effort'\nattempts = 1"),
        ("attempts", "strategy = 'standard'\nattempts = 1"),
        ("max_attempts", "strategy = 'adaptive'\nmax_attempts = 1"),
        (
            "presets",
            "strategy = 'adaptive'\nstandard = { presets = 'guidance' }",
        ),
        (
            "base",
            "strategy = 'best_effort'\nbackoff = { shape = 'none', base = '1s' }",
        ),
        (
            "max",
            "strategy = 'best_effort'\nbackoff = { shape = 'constant', delay = '1s', max = '1s' }",
        ),
        ("size", "strategy = 'standard'\nbudget = { size = 1 }"),
        (
            "other",
            "strategy = 'standard'\nbudget.costs = { normal = 1, timeout = 1, throttling = 1, other = 1 }",
        ),
    ] {
        let error = rejected(toml);
        assert!(
            error.contains(&format!("unknown field `{field}`")),
            "{toml}\n{error}"
        );
    }
}

#[test]
fn an_invalid_value_names_what_is_expected() {
    for (part, toml) in [
        ("unknown variant `standart`", "strategy = 'standart'"),
        ("missing field `strategy`", "max_attempts = 3"),
        (
            "unknown variant `aws`",
            "strategy = 'standard'\npreset = 'aws'",
        ),
        (
            "a time such as \"100ms\"",
            "strategy = 'standard'\nmax_backoff = 5",
        ),
        (
            "a time such as \"100ms\"",
            "strategy = 'standard'\nmax_backoff = '5'",
        ),
        (
            "missing field `cap`",
            "strategy = 'best_effort'\nbackoff = { shape = 'exponential', base = '1s' }",
        ),
        (
            "missing field `timeout`",
            "strategy = 'standard'\nbudget.costs = { normal = 1 }",
        ),
        (
            "unknown variant",
            "strategy = 'standard'\nbudget.refund = { always = 1 }",
        ),
        (
            "unknown variant",
            "strategy = 'best_effort'\nbackoff = { shape = 'fibonacci' }",
        ),
        ("expected u32", "strategy = 'standard'\nmax_attempts = -1"),
    ] {
        let error = rejected(toml);
        assert!(error.contains(part), "{toml}\n{error}");
    }
}

#[test]
fn what_a_builder_rejects_is_named_by_its_path_in_the_file() {
    let backoff = "{ shape = 'exponential', base = '2s', cap = '1s' }";
    for (field, toml) in [
        ("max_attempts", "strategy = 'standard'\nmax_attempts = 0".to_owned()),
        ("max_attempts", "strategy = 'best_effort'\nmax_attempts = 0".to_owned()),
        ("standard.max_attempts", "strategy = 'adaptive'\nstandard.max_attempts = 0".to_owned()),
        ("backoff.base", format!("strategy = 'standard'\nbackoff = {backoff}")),
        ("backoff.base", format!("strategy = 'best_effort'\nbackoff = {backoff}")),
        ("throttling_backoff.base", format!("strategy = 'standard'\nthrottling_backoff = {backoff}")),
        ("backoff.factor", "strategy = 'best_effort'\nbackoff = { shape = 'exponential', base = '1s', cap = '9s', factor = 1 }".to_owned()),
        ("budget.capacity", "strategy = 'standard'\nbudget.capacity = 0".to_owned()),
        ("budget.capacity", "strategy = 'best_effort'\nbudget.capacity = 0".to_owned()),
        ("standard.budget.initial", "strategy = 'adaptive'\nstandard.budget.initial = 501".to_owned()),
        ("fast_fail_on_terminal_error", "strategy = 'best_effort'\nfast_fail_on_terminal_error = true".to_owned()),
    ] {
        assert_eq!(invalid_field(&toml), field, "{toml}");
    }
}

#[test]
fn terminal_errors_come_from_the_protocol() {
    let config = read("strategy = 'best_effort'\nfast_fail_on_terminal_error = true");
    let terminal = Terminal::new(&crate::reason::TLS_ERROR, |_, _| "no trust".into());
    let strategy = config
        .build_with_terminals(vec![terminal])
        .expect("it is valid");
    let text = Described(&strategy).to_string();
    assert!(text.contains("failing fast on terminal errors"), "{text}");
    let plain = read("strategy = 'best_effort'")
        .build_with_terminals(vec![])
        .unwrap();
    assert_eq!(
        Described(&plain).to_string(),
        described("strategy = 'best_effort'")
    );
}

#[test]
fn a_load_aware_strategy_names_invalid_fields() {
    let none = "strategy = 'load_aware'\nmax_attempts = 0";
    assert_eq!(invalid_field(none), "max_attempts");
    assert!(rejected("strategy = 'load_aware'\nbudget = {}").contains("unknown field"));
}
