//! A rejected request changes nothing.

use super::*;

#[tokio::test]
async fn a_job_that_cannot_be_tagged_is_not_tracked() {
    let engine = open(false).await;
    add(&engine, &q(), vec![new("a")]).await;
    let before = engine.last_event().await.unwrap();
    let tags = (0..2_001).map(|n| n.to_string()).collect();
    let tracked = engine.track(vec![(JobKey::qless("a"), tags)], None).await;
    let refused = tracked.unwrap().remove(0);
    assert!(matches!(refused, Err(Error::TooMany { .. })), "{refused:?}");
    assert_eq!(engine.known_tracked().ids(), Vec::<String>::new());
    assert_eq!(engine.last_event().await.unwrap(), before);
}

#[tokio::test]
async fn a_record_for_a_deleted_queue_takes_no_number_of_a_new_queue() {
    let engine = open(false).await;
    engine.create_queue("books").await.unwrap();
    let deleted = engine.record_queue("books").await.unwrap();
    engine.delete_queue(&deleted).await.unwrap();
    engine.create_queue("books").await.unwrap();
    let (payload, state) = (|| "1".to_owned(), || "null".to_owned());
    let refused = engine.create_record(&deleted, payload(), state()).await;
    assert!(
        matches!(refused, Err(Error::NoSuchQueue { .. })),
        "{refused:?}"
    );
    let books = engine.record_queue("books").await.unwrap();
    let first = engine.create_record(&books, payload(), state()).await;
    assert_eq!(first.unwrap().id, 1);
}
