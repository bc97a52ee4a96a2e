use crate::engine::engine_without_tasks as engine;
use crate::engine::maintenance::SystemTask;
use crate::engine::maintenance::tasks::MaintenanceTask;
use crate::engine::test_support::{read_number, run_statements};
use crate::store::Statement;

#[tokio::test]
async fn up_to_32_mib_of_removed_jobs_are_deleted_before_the_last_one_at_once() {
    for (bytes, first) in [((8 << 20) - 1, 5), (8 << 20, 4), ((8 << 20) + 1, 4)] {
        let engine = engine().await;
        let operation = "
INSERT INTO operations (id, version, created_at, who, action, stage, total, is_least, down_to, done, skipped, restored,
    lost, keeps, kept_bytes, ended_at) VALUES (1, 1, 1, 'w', '\"cancel\"', 2, 6, 0, 0, 6, 0, 0, 0, 1, 0, 1)";
        let removed = "
INSERT INTO removed (operation, n, job) WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers
    WHERE n < 6) SELECT 1, n, printf('%.*c', $1, 'x') FROM numbers";
        let removed = Statement::new(removed, [i64::into(bytes)]);
        run_statements(&engine, [Statement::new(operation, []), removed]).await;
        let task = MaintenanceTask::DeleteOldOperations;
        let run = async || engine.run_system_task(SystemTask::Maintain(task)).await;
        let count = "SELECT count(*) FROM removed";
        for (deleted, left) in [(first, 6 - first), (6 - first, 0), (0, 0)] {
            assert_eq!(run().await.unwrap(), deleted, "{bytes} bytes");
            assert_eq!(read_number(&engine, count).await, left as i64);
        }
        assert!(task.may_have_more(1));
        engine.close().await;
    }
}
