//! Six tests of an application: in a rebalance, a failover, after a lost answer, with a busy and
//! with a slow server, and with an insert that never works. The guide "Test your application" shows them.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, Collection, Credentials, ErrorKind};
use steadfast_wire::{Opcode, Status};

/// The application under test: a shop that stores orders.
mod shop {
    use super::*;

    /// Stores an order once, also if an answer is lost.
    ///
    /// An insert may fail after it was applied. It is safe to repeat: then the order exists.
    pub(super) async fn place_order(
        orders: &Collection,
        key: &str,
        order: &Value,
    ) -> Result<(), steadfast_couchbase::Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match orders.insert(key, order).await {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::DocumentExists => return Ok(()),
                Err(error) if attempts < 5 && error.is_ambiguous() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the status of an order, or "unknown" if the database is too slow.
    pub(super) async fn status_of(
        orders: &Collection,
        key: &str,
        patience: Duration,
    ) -> Result<String, Box<dyn Error>> {
        match orders.get(key).timeout(patience).await {
            Ok(found) => {
                let order: Value = found.content()?;
                Ok(order["status"].as_str().unwrap_or_default().to_owned())
            }
            Err(error) if error.is_timeout() => Ok("unknown".into()),
            Err(error) => Err(error.into()),
        }
    }
}

use shop::{place_order, status_of};

const LONG: Duration = Duration::from_secs(60);

async fn start() -> Result<(TestCluster, Collection), Box<dyn Error>> {
    let bucket = BucketSettings::new("shop").vbuckets(64).replicas(1);
    let server = TestCluster::builder()
        .nodes(3)
        .bucket(bucket)
        .start()
        .await?;
    let login = Credentials::password(TestCluster::USER, TestCluster::PASSWORD);
    let cluster = Cluster::connect(&server.connection_string(), login).await?;
    Ok((server, cluster.bucket("shop").default_collection()))
}

fn order() -> Value {
    json!({"status": "paid"})
}

/// Returns how often the cluster has written a key.
fn writes(server: &TestCluster, key: &str) -> usize {
    let written = server.journal().since(0);
    written
        .iter()
        .filter(|write| write.key() == key.as_bytes())
        .count()
}

#[tokio::test]
async fn a_rebalance_loses_no_order() -> Result<(), Box<dyn Error>> {
    let (server, orders) = start().await?;
    let (_node, mut rebalance) = server.begin_rebalance_in().await?;
    let mut placed = BTreeSet::new();
    while rebalance.remaining() > 0 {
        rebalance.step(1);
        let key = format!("order:{}", placed.len());
        place_order(&orders, &key, &order()).await?;
        placed.insert(key.into_bytes());
    }
    rebalance.finish().await;
    let written = server.journal().since(0);
    assert_eq!(written.len(), placed.len());
    assert_eq!(
        written
            .iter()
            .map(|write| write.key().to_vec())
            .collect::<BTreeSet<_>>(),
        placed
    );
    Ok(())
}

#[tokio::test]
async fn orders_survive_a_failover() -> Result<(), Box<dyn Error>> {
    let (server, orders) = start().await?;
    for n in 0..50 {
        place_order(&orders, &format!("before:{n}"), &order()).await?;
    }
    server.fail_over(server.nodes()[1]).await?;
    for n in 0..50 {
        place_order(&orders, &format!("after:{n}"), &order()).await?;
        assert_eq!(
            status_of(&orders, &format!("before:{n}"), LONG).await?,
            "paid"
        );
    }
    Ok(())
}

#[tokio::test]
async fn an_order_is_stored_once_if_the_answer_is_lost() -> Result<(), Box<dyn Error>> {
    let (server, orders) = start().await?;
    let lost = server.fault(
        Fault::on(Opcode::Add)
            .key("o:1")
            .times(1)
            .cut_after_applying(),
    );
    place_order(&orders, "o:1", &order()).await?;
    assert_eq!(lost.fired(), 1);
    assert_eq!(writes(&server, "o:1"), 1);
    Ok(())
}

#[tokio::test]
async fn a_busy_server_is_asked_again() -> Result<(), Box<dyn Error>> {
    let (server, orders) = start().await?;
    let busy = Fault::on(Opcode::Add)
        .times(2)
        .answer(Status::TemporaryFailure);
    let busy = server.fault(busy);
    place_order(&orders, "o:2", &order()).await?;
    assert_eq!(busy.fired(), 2);
    assert_eq!(writes(&server, "o:2"), 1);
    Ok(())
}

#[tokio::test]
async fn an_order_that_cannot_be_stored_is_reported() -> Result<(), Box<dyn Error>> {
    let (server, orders) = start().await?;
    let _lost = server.fault(Fault::on(Opcode::Add).key("o:4").cut_before_applying());
    assert!(place_order(&orders, "o:4", &order()).await.is_err());
    assert_eq!(writes(&server, "o:4"), 0);
    Ok(())
}

#[tokio::test]
async fn a_slow_server_does_not_block_the_page() -> Result<(), Box<dyn Error>> {
    let (server, orders) = start().await?;
    place_order(&orders, "o:3", &order()).await?;
    let slow = server.fault(Fault::on(Opcode::Get).key("o:3").hold());
    let patience = Duration::from_millis(200);
    assert_eq!(status_of(&orders, "o:3", patience).await?, "unknown");
    drop(slow);
    assert_eq!(status_of(&orders, "o:3", LONG).await?, "paid");
    Ok(())
}
