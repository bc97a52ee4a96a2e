//! What tests of several modules share: an engine, and direct access to its database.

use crate::engine::unit_of_work::Needs;
use crate::engine::{Engine, EngineSettings};
use crate::store::Statement;

/// An in-memory engine without background tasks.
pub async fn engine_without_tasks() -> Engine {
    let options = EngineSettings {
        database: "sqlite::memory:".to_owned(),
        without_tasks: true,
        ..EngineSettings::default()
    };
    Engine::open(&options).await.unwrap()
}

/// Runs a statement without arguments.
pub async fn run_sql(engine: &Engine, sql: &'static str) {
    run_statements(engine, [Statement::new(sql, [])]).await;
}

/// Runs statements in one transaction.
pub async fn run_statements(engine: &Engine, statements: impl IntoIterator<Item = Statement>) {
    let statements: Vec<Statement> = statements.into_iter().collect();
    let write = engine.write(Needs::default(), None, 1, move |work| {
        work.add_statements(statements.iter().cloned());
        Ok(())
    });
    write.await.unwrap();
}

/// The number that a statement selects.
pub async fn read_number(engine: &Engine, sql: &'static str) -> i64 {
    let rows = engine.readers().rows(Statement::new(sql, [])).await;
    rows.unwrap()[0].int(0).unwrap()
}
