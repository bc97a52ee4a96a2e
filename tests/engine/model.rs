//! All verbs of the engine against a model in memory, with the clock, maintenance, bulk operations, restarts and
//! crashes.
//!
//! A walk is a sequence of episodes, each on an empty database. A difference is printed with the seed and the shortest
//! sequence of steps that still shows it. `SWITCHYARD_MODEL_STEPS` sets the number of steps, `SWITCHYARD_SEED` the
//! random choices.

mod apply;
mod choose;
mod choose_others;
mod claims;
mod compare;
mod coverage;
mod driver;
mod memory;
mod operations;
mod others;
mod qless;
mod scripted;
mod shrink;
mod steps;

use std::time::Instant;

use super::random::Random;
use super::{database, settings};
use coverage::Coverage;
use driver::Driver;
use memory::{Model, SECOND};
use steps::Step;

/// The secret of the token.
const SECRET: &str = "a-secret-of-some-length";

/// Steps on one database.
const EPISODE: usize = 2_000;

/// Steps between two comparisons of everything, and between two consistency checks.
const COMPARE_EVERY: usize = 20;
const CHECK_EVERY: usize = 500;

/// The time at the start, in the future: the database's own clock is never ahead.
const START: i64 = 4_000_000_000 * SECOND;

/// The time for which a crashed server's number stays reserved on a shared database.
const NUMBER_KEPT: i64 = 61 * SECOND;

/// The engine and the model, side by side.
struct Walk {
    driver: Driver,
    model: Model,
    /// How often everything is compared.
    compare_every: usize,
    count: usize,
}

impl Walk {
    async fn start(compare_every: usize) -> Walk {
        Walk {
            driver: Driver::open(START).await,
            model: Model::at(START),
            compare_every,
            count: 0,
        }
    }

    /// Runs a step on the engine and on the model. Returns the outcome, or the difference.
    async fn step(&mut self, step: &Step) -> Result<String, String> {
        self.model.begin();
        if matches!(step, Step::Crash) && database::postgres().is_some() {
            self.model.now += NUMBER_KEPT;
        }
        let found = self.driver.apply(step, self.model.now).await;
        let expected = self.model.apply(step);
        if found != expected {
            let name = step.name();
            return Err(format!("{name}\n  engine: {found}\n  model:  {expected}"));
        }
        self.count += 1;
        let restarts = matches!(step, Step::Crash | Step::Reopen | Step::Flush);
        if self.count.is_multiple_of(self.compare_every) || restarts {
            self.compare().await?;
        }
        if self.count.is_multiple_of(CHECK_EVERY) {
            self.check().await?;
        }
        Ok(found)
    }

    async fn compare(&self) -> Result<(), String> {
        self.driver.set_time(self.model.now);
        compare::compare(&self.driver, &self.model).await
    }

    async fn check(&self) -> Result<(), String> {
        let problems = self.driver.engine.check(None).await.unwrap();
        match problems.first() {
            Some(problem) => Err(format!("{}: {}", problem.kind, problem.message)),
            None => Ok(()),
        }
    }

    async fn end(self) {
        self.driver.engine.close().await;
    }
}

/// Runs the steps on a new database, and compares everything after each. Returns the first difference, and the number
/// of steps until then.
async fn replay(steps: &[Step]) -> Option<(usize, String)> {
    let mut walk = Walk::start(1).await;
    let mut found = None;
    for (place, step) in steps.iter().enumerate() {
        if let Err(difference) = walk.step(step).await {
            found = Some((place + 1, difference));
            break;
        }
    }
    if found.is_none()
        && let Err(difference) = walk.check().await
    {
        found = Some((steps.len(), difference));
    }
    walk.end().await;
    found
}

/// One episode. Returns the steps until the first difference, if there is one.
async fn episode(random: &mut Random, steps: usize, coverage: &mut Coverage) -> Option<Vec<Step>> {
    let mut walk = Walk::start(COMPARE_EVERY).await;
    let mut taken = Vec::new();
    let mut scripted = match coverage.steps {
        0 => scripted::steps(),
        _ => Vec::new(),
    };
    scripted.reverse();
    let mut is_equal = true;
    for _ in 0..steps {
        let step = scripted.pop().unwrap_or_else(|| choose::step(random));
        taken.push(step.clone());
        match walk.step(&step).await {
            Ok(outcome) => coverage.add(&step.name(), &outcome),
            Err(difference) => {
                println!("after {} steps: {difference}", taken.len());
                is_equal = false;
                break;
            }
        }
    }
    if is_equal && let Err(difference) = walk.compare().await {
        println!("at the end: {difference}");
        is_equal = false;
    }
    if is_equal && let Err(difference) = walk.check().await {
        println!("at the end: {difference}");
        is_equal = false;
    }
    coverage.add("Check", "");
    walk.end().await;
    (!is_equal).then_some(taken)
}

#[tokio::test]
async fn every_verb_agrees_with_a_model_in_memory() {
    let seed = super::seed_of_run("SWITCHYARD_MODEL_STEPS");
    // Each step on Postgres waits for several round trips, which a busy machine makes long.
    let usual = match database::postgres() {
        Some(_) => 2_500,
        None => 8_000,
    };
    let steps = settings::number("SWITCHYARD_MODEL_STEPS", usual);
    let (mut random, mut coverage) = (Random(seed), Coverage::default());
    let began = Instant::now();
    let mut left = usize::try_from(steps).unwrap();
    while left > 0 {
        let count = left.min(EPISODE);
        if let Some(taken) = episode(&mut random, count, &mut coverage).await {
            let shortest = shrink::shortest(taken).await;
            println!("the shortest sequence of seed {seed}:");
            for step in &shortest {
                println!("  {step:?}");
            }
            let difference = replay(&shortest).await;
            panic!("seed {seed}: {difference:?}");
        }
        left -= count;
    }
    coverage.print();
    let rate = coverage.steps as f64 / began.elapsed().as_secs_f64();
    let restarts = coverage.count("Crash") + coverage.count("Reopen");
    println!("{steps} steps, {restarts} crashes and restarts, {rate:.0} steps/s");
    assert_eq!(coverage.missing(), Vec::<String>::new(), "never reached");
}
