//! The copied tables and their columns. Not copied: `_sqlx_migrations`, which the migrations fill; `servers` and
//! `leader`, which servers fill; `deleted_queues`, whose revisions are those of one database; and `state`, which is
//! updated separately.

use Kind::{Int, Real, Text};

/// A table and its columns, those of the primary key first.
pub struct Table {
    pub name: &'static str,
    /// How many of the columns are its primary key.
    pub key: usize,
    pub columns: &'static [(&'static str, Kind)],
}

/// The type of a column. Every column may also be NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Int,
    Real,
    Text,
}

impl Table {
    /// The names of all columns, separated by commas.
    pub fn columns(&self) -> String {
        self.names(self.columns.len())
    }

    /// The names of the columns of the primary key, separated by commas.
    pub fn key(&self) -> String {
        self.names(self.key)
    }

    fn names(&self, count: usize) -> String {
        let names = self.columns.iter().take(count).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(", ")
    }
}

/// The tables in the order in which they are copied.
pub const TABLES: &[Table] = &[
    Table {
        name: "queues",
        key: 1,
        columns: &[
            ("id", Int),
            ("protocol", Text),
            ("namespace", Text),
            ("name", Text),
            ("first_seen", Int),
            ("paused", Int),
            ("forgotten", Int),
            ("last_number", Int),
            ("revision", Int),
            ("paused_since", Int),
            ("paused_until", Int),
            ("pause_reason", Text),
            ("paused_by", Text),
        ],
    },
    Table {
        name: "config",
        key: 1,
        columns: &[("option", Text), ("value", Text)],
    },
    Table {
        name: "jobs",
        key: 1,
        columns: &[
            ("seq", Int),
            ("scope", Int),
            ("id", Text),
            ("queue", Int),
            ("state", Int),
            ("priority", Real),
            ("ready_at", Int),
            ("since", Int),
            ("worker", Text),
            ("lease_id", Text),
            ("lease_until", Int),
            ("retries", Int),
            ("remaining", Int),
            ("klass", Text),
            ("tags", Text),
            ("history", Text),
            ("failure_group", Text),
            ("failure_message", Text),
            ("failure_worker", Text),
            ("failure_at", Int),
            ("body", Text),
            ("created_at", Int),
            ("version", Int),
            ("warned", Int),
            ("spawned_from", Text),
            ("expires_at", Int),
            ("attributes", Text),
            ("timeout_s", Int),
            ("work_state", Text),
            ("updated_at", Int),
            ("label", Text),
        ],
    },
    Table {
        name: "long_bodies",
        key: 1,
        columns: &[("job", Int), ("body", Text)],
    },
    Table {
        name: "dependencies",
        key: 2,
        columns: &[("job", Int), ("needs", Int)],
    },
    Table {
        name: "tags",
        key: 2,
        columns: &[
            ("job", Int),
            ("tag", Text),
            ("tagged_at", Int),
            ("id", Text),
        ],
    },
    Table {
        name: "tag_counts",
        key: 2,
        columns: &[("tag", Text), ("server", Int), ("n", Int)],
    },
    Table {
        name: "tallies",
        key: 5,
        columns: &[
            ("kind", Int),
            ("queue", Int),
            ("day", Int),
            ("slot", Int),
            ("server", Int),
            ("n", Int),
            ("mean", Real),
            ("m2", Real),
        ],
    },
    Table {
        name: "failure_counts",
        key: 3,
        columns: &[
            ("failure_group", Text),
            ("queue", Int),
            ("server", Int),
            ("n", Int),
        ],
    },
    Table {
        name: "workers",
        key: 2,
        columns: &[("protocol", Text), ("name", Text), ("last_seen", Int)],
    },
    Table {
        name: "tracked",
        key: 1,
        columns: &[("id", Text), ("since", Int)],
    },
    Table {
        name: "tokens",
        key: 2,
        columns: &[
            ("namespace", Text),
            ("hash", Text),
            ("description", Text),
            ("created_at", Int),
            ("expires_at", Int),
            ("used_at", Int),
        ],
    },
    Table {
        name: "recurring",
        key: 1,
        columns: &[
            ("id", Text),
            ("seq", Int),
            ("queue", Int),
            ("next_at", Int),
            ("interval", Int),
            ("made", Int),
            ("backlog", Int),
            ("priority", Real),
            ("retries", Int),
            ("klass", Text),
            ("tags", Text),
            ("body", Text),
            ("version", Int),
            ("cron", Text),
            ("zone", Text),
            ("held_next", Int),
        ],
    },
    Table {
        name: "scripts",
        key: 1,
        columns: &[("sha", Text), ("dialect", Text), ("loaded_at", Int)],
    },
    Table {
        name: "searches",
        key: 1,
        columns: &[
            ("name", Text),
            ("text", Text),
            ("who", Text),
            ("saved_at", Int),
        ],
    },
    Table {
        name: "alert_rules",
        key: 1,
        columns: &[
            ("id", Text),
            ("name", Text),
            ("url", Text),
            ("kinds", Text),
            ("after_s", Int),
            ("who", Text),
            ("created_at", Int),
        ],
    },
    Table {
        name: "alerts",
        key: 2,
        columns: &[
            ("rule", Text),
            ("problem", Text),
            ("id", Text),
            ("raised_at", Int),
            ("content", Text),
        ],
    },
    Table {
        name: "alert_deliveries",
        key: 1,
        columns: &[
            ("id", Text),
            ("follows", Text),
            ("rule", Text),
            ("rule_name", Text),
            ("event", Text),
            ("content", Text),
            ("created_at", Int),
            ("attempts", Int),
            ("next_at", Int),
            ("done_at", Int),
            ("delivered", Int),
            ("outcome", Text),
        ],
    },
    Table {
        name: "mutes",
        key: 1,
        columns: &[
            ("failure_group", Text),
            ("reason", Text),
            ("who", Text),
            ("muted_at", Int),
            ("until_at", Int),
        ],
    },
    Table {
        name: "sessions",
        key: 1,
        columns: &[
            ("hash", Text),
            ("name", Text),
            ("proof", Text),
            ("created_at", Int),
            ("seen_at", Int),
        ],
    },
    Table {
        name: "audit",
        key: 1,
        columns: &[
            ("id", Text),
            ("at", Int),
            ("who", Text),
            ("role", Text),
            ("action", Text),
            ("target", Text),
            ("link", Text),
            ("before", Text),
            ("after", Text),
            ("items", Int),
            ("done", Int),
            ("said", Text),
            ("request_id", Text),
            ("source", Text),
        ],
    },
    Table {
        name: "events",
        key: 1,
        columns: &[("first", Int), ("n", Int), ("at", Int), ("entries", Text)],
    },
    Table {
        name: "operations",
        key: 1,
        columns: &[
            ("id", Int),
            ("version", Int),
            ("created_at", Int),
            ("who", Text),
            ("action", Text),
            ("search", Text),
            ("jobs", Text),
            ("stage", Int),
            ("total", Int),
            ("is_least", Int),
            ("down_to", Int),
            ("done", Int),
            ("skipped", Int),
            ("restored", Int),
            ("lost", Int),
            ("keeps", Int),
            ("kept_bytes", Int),
            ("started_at", Int),
            ("ended_at", Int),
            ("undo_until", Int),
            ("why", Text),
        ],
    },
    Table {
        name: "operation_skips",
        key: 2,
        columns: &[
            ("operation", Int),
            ("n", Int),
            ("job", Int),
            ("protocol", Text),
            ("namespace", Text),
            ("queue", Text),
            ("id", Text),
            ("why", Text),
        ],
    },
    Table {
        name: "removed",
        key: 2,
        columns: &[
            ("operation", Int),
            ("n", Int),
            ("job", Text),
            ("body", Text),
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use sqlx::sqlite::SqliteConnection;
    use sqlx::{Connection, Row};

    use super::*;

    /// Tables that are not copied.
    const OTHERS: [&str; 5] = [
        "_sqlx_migrations",
        "deleted_queues",
        "leader",
        "servers",
        "state",
    ];

    #[tokio::test]
    async fn every_table_of_the_migrations_is_copied_with_all_its_columns() {
        let mut database = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let migrations = crate::store::migrations::sqlite();
        migrations.run(&mut database).await.unwrap();
        let sql = "SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
                   WHERE m.type = 'table'";
        let mut made: BTreeMap<String, BTreeSet<(String, Kind, bool)>> = BTreeMap::new();
        for row in sqlx::query(sql).fetch_all(&mut database).await.unwrap() {
            let table: String = row.get(0);
            if OTHERS.contains(&table.as_str()) {
                continue;
            }
            let kind = match row.get::<String, _>(2).as_str() {
                "TEXT" => Text,
                "DOUBLE PRECISION" => Real,
                "INTEGER" | "BIGINT" | "SMALLINT" => Int,
                other => panic!("a column that is {other}"),
            };
            let column = (row.get(1), kind, row.get::<i64, _>(3) > 0);
            made.entry(table).or_default().insert(column);
        }
        let copied = TABLES.iter().map(|table| {
            let columns = table.columns.iter().enumerate();
            let columns =
                columns.map(|(i, (name, kind))| ((*name).to_owned(), *kind, i < table.key));
            (table.name.to_owned(), columns.collect())
        });
        assert_eq!(made, copied.collect());
    }
}
