//! Wake-ups: "something changed, look again". Within the process they are immediate; to other processes they go by NOTIFY, many
//! in one, from a background task whose commits need not reach the disk. A lost one costs the reader its poll interval, no more.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::{mpsc, watch};

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// Rows were added to `events`.
    Events,
    /// What a node should do.
    Node(String),
    /// Output or steps of a job.
    Job(u64),
}

impl Topic {
    fn encode(&self) -> String {
        match self {
            Topic::Events => "e".to_owned(),
            Topic::Node(node) => format!("n{node}"),
            Topic::Job(job) => format!("j{job}"),
        }
    }

    fn decode(text: &str) -> Option<Topic> {
        match text.split_at_checked(1)? {
            ("e", _) => Some(Topic::Events),
            ("n", node) => Some(Topic::Node(node.to_owned())),
            ("j", job) => job.parse().ok().map(Topic::Job),
            _ => None,
        }
    }
}

const CHANNEL: &str = "berth";
/// Postgres refuses payloads of 8000 bytes and more.
const MAX_PAYLOAD: usize = 7000;

/// The process's hub of wake-ups.
#[derive(Clone, Debug)]
pub struct Wake {
    waiting: Arc<Mutex<HashMap<Topic, watch::Sender<u64>>>>,
    outgoing: mpsc::UnboundedSender<Topic>,
}

impl Wake {
    pub(crate) fn start(pool: PgPool) -> Wake {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let wake = Wake { waiting: Arc::default(), outgoing };
        tokio::spawn(send_loop(pool.clone(), queue));
        tokio::spawn(receive_loop(pool, wake.clone()));
        wake
    }

    /// Wakes all that wait for `topic`, here and in other processes.
    pub fn notify(&self, topic: Topic) {
        self.notify_here(&topic);
        // Fails only while the process is shutting down.
        let _ = self.outgoing.send(topic);
    }

    pub(crate) fn notify_nodes<'a>(&self, nodes: impl IntoIterator<Item = &'a str>) {
        for node in nodes {
            self.notify(Topic::Node(node.to_owned()));
        }
    }

    fn notify_here(&self, topic: &Topic) {
        let mut waiting = self.waiting.lock().expect("no panic while the lock is held");
        if let Some(sender) = waiting.get(topic) {
            if sender.receiver_count() == 0 {
                waiting.remove(topic);
            } else {
                sender.send_modify(|n| *n += 1);
            }
        }
    }

    /// A receiver that changes at each wake-up from now on. Subscribe first, then read the data, then wait.
    pub fn subscribe(&self, topic: Topic) -> watch::Receiver<u64> {
        let mut waiting = self.waiting.lock().expect("no panic while the lock is held");
        waiting.entry(topic).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// After a gap in listening anything may have changed.
    fn notify_all_here(&self) {
        let mut waiting = self.waiting.lock().expect("no panic while the lock is held");
        waiting.retain(|_, sender| sender.receiver_count() > 0);
        for sender in waiting.values() {
            sender.send_modify(|n| *n += 1);
        }
    }
}

async fn send_loop(pool: PgPool, mut queue: mpsc::UnboundedReceiver<Topic>) {
    while let Some(first) = queue.recv().await {
        let mut topics = BTreeSet::from([first]);
        while let Ok(more) = queue.try_recv() {
            topics.insert(more);
        }
        let mut payloads = vec![String::new()];
        for topic in topics {
            let text = topic.encode();
            if payloads.last().is_some_and(|p| p.len() + text.len() + 1 > MAX_PAYLOAD) {
                payloads.push(String::new());
            }
            let payload = payloads.last_mut().expect("never empty");
            if !payload.is_empty() {
                payload.push(',');
            }
            payload.push_str(&text);
        }
        if let Err(error) = send(&pool, &payloads).await {
            if pool.is_closed() {
                return;
            }
            tracing::debug!(%error, "wake-ups were not sent; readers poll");
        }
    }
}

async fn send(pool: &PgPool, payloads: &[String]) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin().await?;
    // The notification is worth nothing after a crash, so its commit need not wait for the disk.
    sqlx::query("set local synchronous_commit = off").execute(&mut *tx).await?;
    sqlx::query("select pg_notify($1, p) from unnest($2::text[]) p").bind(CHANNEL).bind(payloads).execute(&mut *tx).await?;
    tx.commit().await
}

async fn receive_loop(pool: PgPool, wake: Wake) {
    while !pool.is_closed() {
        if let Err(error) = listen(&pool, &wake).await {
            if pool.is_closed() {
                return;
            }
            tracing::debug!(%error, "listening for wake-ups was interrupted");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn listen(pool: &PgPool, wake: &Wake) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    wake.notify_all_here();
    // `None` means that the connection was lost and made anew: what came in between is gone.
    loop {
        match listener.try_recv().await? {
            Some(notification) => {
                for topic in notification.payload().split(',').filter_map(Topic::decode) {
                    wake.notify_here(&topic);
                }
            }
            None => wake.notify_all_here(),
        }
    }
}
