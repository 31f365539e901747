//! Strategies of every shape, as data that can be printed and built again.

use std::time::Duration;

use proptest::prelude::*;
use steadfast::law::MaybeRule;
use steadfast::strategy::{RetryAfter, WhenLimited};
use steadfast::{
    Adaptive, Backoff, BestEffort, Budget, Jitter, LoadAware, RetryStrategy, Standard, StrategyExt,
};

use crate::budgets::{BudgetData, budgets};
use crate::{durations, lengths};

#[derive(Clone, Debug)]
pub(crate) struct StrategyData {
    base: Base,
    around: Vec<Around>,
}

#[derive(Clone, Debug)]
enum Base {
    BestEffort(Delays, RetryAfter, MaybeRule),
    Standard {
        attempts: u32,
        delays: Delays,
        throttling: Delays,
        hint: RetryAfter,
        maybe: MaybeRule,
        data: BudgetData,
    },
    LoadAware {
        fleet: bool,
        around: bool,
    },
    Adaptive,
}

#[derive(Clone, Debug)]
enum Around {
    Budget(BudgetData),
    MaxAttempts(u32),
    WhenRetries(u32),
    WhenNotThrottled,
}

#[derive(Clone, Debug)]
struct Delays {
    shape: Shape,
    jitter: Jitter,
}

#[derive(Clone, Debug)]
enum Shape {
    None,
    Constant(Duration),
    Linear(Duration, Duration, Duration),
    Exponential(u32, Duration, Duration),
    Controlled,
    /// Up and down, as only a function of one's own goes.
    Custom(Vec<Duration>),
}

/// A strategy come to life, with the budgets that its retries are paid from.
pub(crate) struct Built {
    pub(crate) strategy: Box<dyn RetryStrategy>,
    pub(crate) budgets: Vec<(BudgetData, Budget)>,
}

impl StrategyData {
    pub(crate) fn build(&self) -> Built {
        let (strategy, mut budgets) = self.base.build();
        let mut strategy = strategy;
        for around in &self.around {
            strategy = match around.clone() {
                Around::Budget(data) => {
                    let budget = data.build();
                    budgets.push((data, budget.clone()));
                    Box::new(strategy.with_budget(budget))
                }
                Around::MaxAttempts(limit) => {
                    Box::new(strategy.max_attempts(limit).expect("at least 1"))
                }
                Around::WhenRetries(limit) => {
                    Box::new(strategy.when(move |request, _| request.retries() < limit))
                }
                Around::WhenNotThrottled => {
                    Box::new(strategy.when(|_, failure| !failure.throttling))
                }
            };
        }
        Built { strategy, budgets }
    }
}

impl Base {
    fn build(&self) -> (Box<dyn RetryStrategy>, Vec<(BudgetData, Budget)>) {
        match self.clone() {
            Base::BestEffort(delays, hint, maybe) => {
                let strategy = BestEffort::new(delays.build())
                    .retry_after(hint)
                    .retry_maybe(maybe);
                (Box::new(strategy), Vec::new())
            }
            Base::Standard {
                attempts,
                delays,
                throttling,
                hint,
                maybe,
                data,
            } => {
                let budget = data.build();
                let strategy = Standard::builder()
                    .max_attempts(attempts)
                    .backoff(delays.build())
                    .throttling_backoff(throttling.build())
                    .retry_after(hint)
                    .retry_maybe(maybe)
                    .budget(budget.clone())
                    .build()
                    .expect("at least 1 attempt");
                (Box::new(strategy), vec![(data, budget)])
            }
            Base::LoadAware { fleet, around } => {
                let strategy = match fleet {
                    true => LoadAware::fleet(),
                    false => LoadAware::new(),
                };
                match around {
                    true => (Box::new(strategy.around(BestEffort::default())), Vec::new()),
                    false => (Box::new(strategy), Vec::new()),
                }
            }
            Base::Adaptive => {
                let strategy = Adaptive::new(Standard::guidance(), WhenLimited::Wait);
                (Box::new(strategy), Vec::new())
            }
        }
    }
}

impl Delays {
    fn build(&self) -> Backoff {
        let possible = "drawn to be possible";
        match self.shape.clone() {
            Shape::None => Backoff::none(),
            Shape::Constant(delay) => Backoff::constant(delay),
            Shape::Linear(first, step, cap) => {
                Backoff::linear(first, step, cap.max(first)).expect(possible)
            }
            Shape::Exponential(factor, base, cap) => {
                Backoff::exponential_by(factor, base, cap.max(base)).expect(possible)
            }
            Shape::Controlled => Backoff::controlled(),
            Shape::Custom(table) => Backoff::custom(move |retries| {
                let place = retries as usize % table.len();
                table[place]
            }),
        }
        .with_jitter(self.jitter)
    }
}

pub(crate) fn strategies() -> BoxedStrategy<StrategyData> {
    (bases(), prop::collection::vec(arounds(), 0..3))
        .prop_map(|(base, around)| StrategyData { base, around })
        .boxed()
}

/// The same, and a strategy that limits the rate of attempts.
pub(crate) fn all_strategies() -> BoxedStrategy<StrategyData> {
    let adaptive = StrategyData {
        base: Base::Adaptive,
        around: Vec::new(),
    };
    prop_oneof![6 => strategies(), 1 => Just(adaptive)].boxed()
}

/// Policies of which every retry is paid for.
pub(crate) fn strategies_with_budgets() -> BoxedStrategy<StrategyData> {
    (strategies(), budgets())
        .prop_map(|(mut strategy, data)| {
            if strategy.build().budgets.is_empty() {
                strategy.around.push(Around::Budget(data));
            }
            strategy
        })
        .boxed()
}

fn bases() -> BoxedStrategy<Base> {
    let best_effort = (delays(), hints(), maybes())
        .prop_map(|(delays, hint, maybe)| Base::BestEffort(delays, hint, maybe));
    let attempts = prop_oneof![2 => 1..3u32, 2 => 3..6u32, 1 => 6..100u32];
    let standard = (attempts, delays(), delays(), hints(), maybes(), budgets()).prop_map(
        |(attempts, delays, throttling, hint, maybe, data)| Base::Standard {
            attempts,
            delays,
            throttling,
            hint,
            maybe,
            data,
        },
    );
    let load_aware = (any::<bool>(), any::<bool>())
        .prop_map(|(fleet, around)| Base::LoadAware { fleet, around });
    prop_oneof![2 => best_effort, 2 => standard, 1 => load_aware].boxed()
}

fn arounds() -> BoxedStrategy<Around> {
    prop_oneof![
        budgets().prop_map(Around::Budget),
        (1..20u32).prop_map(Around::MaxAttempts),
        (0..20u32).prop_map(Around::WhenRetries),
        Just(Around::WhenNotThrottled),
    ]
    .boxed()
}

fn delays() -> BoxedStrategy<Delays> {
    let shape = prop_oneof![
        Just(Shape::None),
        durations().prop_map(Shape::Constant),
        (durations(), durations(), durations())
            .prop_map(|(first, step, cap)| Shape::Linear(first, step, cap)),
        (2..5u32, lengths(), durations())
            .prop_map(|(factor, base, cap)| Shape::Exponential(factor, base, cap)),
        Just(Shape::Controlled),
        prop::collection::vec(durations(), 1..5).prop_map(Shape::Custom),
    ];
    let jitter = prop::sample::select(vec![
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::FullThenEqual,
    ]);
    (shape, jitter)
        .prop_map(|(shape, jitter)| Delays { shape, jitter })
        .boxed()
}

fn hints() -> BoxedStrategy<RetryAfter> {
    prop_oneof![
        Just(RetryAfter::Floor),
        durations().prop_map(RetryAfter::Clamp),
        durations().prop_map(RetryAfter::Cap),
        Just(RetryAfter::Ignore),
    ]
    .boxed()
}

fn maybes() -> BoxedStrategy<MaybeRule> {
    prop::sample::select(vec![
        MaybeRule::Never,
        MaybeRule::UnlessClientFault,
        MaybeRule::Always,
    ])
    .boxed()
}
