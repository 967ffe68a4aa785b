//! Group commit of submissions: requests that arrive while an insert is under way share the next one. A lone request waits for
//! nobody, a crowd pays for one commit together.

use berth_store::jobs::submit::{NewJob, Submitted};
use berth_store::{Db, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::problem::{Answer, Problem};

type Reply = oneshot::Sender<Result<Vec<Submitted>, Problem>>;

/// The queue in front of the database.
pub struct Submissions {
    queue: mpsc::Sender<(Vec<NewJob>, Reply)>,
}

/// Inserts under way at once. Two keep the database busy while results are handed out.
const LANES: usize = 2;
/// Jobs in one insert, unless a single request brings more.
const MAX_GROUP: usize = 2000;
/// Requests that may wait; beyond it submitters are told to come back.
const QUEUE: usize = 20_000;

impl Submissions {
    pub fn start(db: Db) -> Submissions {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(receiver));
        for _ in 0..LANES {
            tokio::spawn(lane(db.clone(), receiver.clone()));
        }
        Submissions { queue }
    }

    /// Stores `jobs`, all or none; returns when they are on disk.
    pub async fn submit(&self, jobs: Vec<NewJob>) -> Answer<Vec<Submitted>> {
        let (reply, answer) = oneshot::channel();
        self.queue.try_send((jobs, reply)).map_err(|_| busy())?;
        answer.await.map_err(|_| busy())?
    }
}

fn busy() -> Problem {
    let mut problem = Problem::new(http::StatusCode::SERVICE_UNAVAILABLE, "overloaded", "too many submissions are waiting")
        .help("repeat the request after the seconds in Retry-After");
    problem.retry_after = Some(1);
    problem
}

/// The queue's end, which the lanes share.
type Queue = std::sync::Arc<tokio::sync::Mutex<mpsc::Receiver<(Vec<NewJob>, Reply)>>>;

async fn lane(db: Db, receiver: Queue) {
    loop {
        let mut jobs = Vec::new();
        let mut replies = Vec::new();
        {
            let mut receiver = receiver.lock().await;
            let Some((first, reply)) = receiver.recv().await else { return };
            replies.push((first.len(), reply));
            jobs.extend(first);
            while jobs.len() < MAX_GROUP
                && let Ok((more, reply)) = receiver.try_recv()
            {
                replies.push((more.len(), reply));
                jobs.extend(more);
            }
        }
        match db.submit_jobs(&jobs).await {
            Ok(submitted) => hand_out(submitted, replies),
            // One bad apple must not spoil the others' requests: each is tried alone.
            Err(StoreError::Refused(_)) if replies.len() > 1 => one_by_one(&db, jobs, replies).await,
            Err(error) => {
                let problem = Problem::from(error);
                for (_, reply) in replies {
                    let _ = reply.send(Err(problem.clone()));
                }
            }
        }
    }
}

fn hand_out(submitted: Vec<Submitted>, replies: Vec<(usize, Reply)>) {
    let mut rest = submitted.as_slice();
    for (count, reply) in replies {
        let (own, others) = rest.split_at(count);
        rest = others;
        // Fails if the client has gone: its job is stored all the same.
        let _ = reply.send(Ok(own.to_vec()));
    }
}

async fn one_by_one(db: &Db, jobs: Vec<NewJob>, replies: Vec<(usize, Reply)>) {
    let mut rest = jobs.as_slice();
    for (count, reply) in replies {
        let (own, others) = rest.split_at(count);
        rest = others;
        let _ = reply.send(db.submit_jobs(own).await.map_err(Problem::from));
    }
}
