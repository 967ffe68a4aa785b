//! Output on its way from spool files to the service. One uploader for the node gathers what its steps have written into few requests.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use berth_model::state::LogStream;
use berth_model::worker::{LogChunk, LogChunks};
use berth_model::{JobId, StepId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::client::{CallError, Client};

/// Bytes of one piece.
const PIECE: usize = 256 * 1024;
/// Pieces in one request.
const PIECES: usize = 16;
/// Bytes after which the place is noted on disk, so that a restarted worker does not send all again.
const NOTE_EVERY: u64 = 4 << 20;

struct Piece {
    chunk: LogChunk,
    done: oneshot::Sender<()>,
}

/// The way to the uploader.
#[derive(Clone)]
pub struct Uploads {
    queue: mpsc::Sender<Piece>,
}

impl Uploads {
    /// The handle, and the queue to be given to [`upload`].
    pub fn new() -> (Uploads, UploadQueue) {
        let (queue, pieces) = mpsc::channel(64);
        (Uploads { queue }, UploadQueue(pieces))
    }

    /// Returns when the service has the piece, or will never take it.
    async fn send(&self, chunk: LogChunk) {
        let (done, taken) = oneshot::channel();
        if self.queue.send(Piece { chunk, done }).await.is_ok() {
            let _ = taken.await;
        }
    }
}

pub struct UploadQueue(mpsc::Receiver<Piece>);

/// Uploads for ever.
pub async fn upload(mut queue: UploadQueue, client: &Client) {
    let mut pieces = Vec::new();
    while queue.0.recv_many(&mut pieces, PIECES).await > 0 {
        let (chunks, done): (Vec<LogChunk>, Vec<_>) = pieces.drain(..).map(|p| (p.chunk, p.done)).unzip();
        send_all(chunks, client).await;
        for done in done {
            let _ = done.send(());
        }
    }
}

async fn send_all(chunks: Vec<LogChunk>, client: &Client) {
    let mut batch = LogChunks { chunks };
    let mut pause = Duration::from_millis(50);
    loop {
        match client.upload(&batch).await {
            Ok(()) => return,
            Err(CallError::Refused { status: 400..=499, detail, .. }) if batch.chunks.len() == 1 => {
                tracing::warn!(job = %batch.chunks[0].job_id, detail, "output is not taken and is dropped");
                return;
            }
            // One of them is not wanted: each for itself.
            Err(CallError::Refused { status: 400..=499, .. }) => {
                for chunk in std::mem::take(&mut batch.chunks) {
                    Box::pin(send_all(vec![chunk], client)).await;
                }
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "output waits");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
        }
    }
}

/// Whose output it is.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub job: JobId,
    pub attempt: u32,
    pub step: StepId,
}

struct Stream {
    task: u32,
    stream: LogStream,
    path: PathBuf,
    sent: u64,
    noted: u64,
}

/// Follows a step's spool files until `ended` is set and all is sent.
pub async fn follow(source: Source, files: Vec<(u32, LogStream, PathBuf)>, uploads: Uploads, mut ended: watch::Receiver<bool>) {
    let mut streams: Vec<Stream> = files
        .into_iter()
        .map(|(task, stream, path)| {
            let sent = noted(&path);
            Stream { task, stream, path, sent, noted: sent }
        })
        .collect();
    let mut pause = SHORTEST;
    loop {
        let is_last = *ended.borrow_and_update();
        let mut found = false;
        for stream in &mut streams {
            while let Some(bytes) = next_piece(&stream.path, stream.sent) {
                found = true;
                let length = bytes.len() as u64;
                let chunk = LogChunk {
                    job_id: source.job,
                    attempt: source.attempt,
                    step: source.step,
                    task: stream.task,
                    stream: stream.stream,
                    offset: stream.sent,
                    bytes: base64::engine::general_purpose::STANDARD.encode(bytes),
                };
                uploads.send(chunk).await;
                stream.sent += length;
                if stream.sent - stream.noted >= NOTE_EVERY {
                    let _ = std::fs::write(note(&stream.path), stream.sent.to_string());
                    stream.noted = stream.sent;
                }
            }
        }
        if is_last {
            return;
        }
        pause = if found { SHORTEST } else { (pause * 3 / 2).min(LONGEST) };
        let _ = tokio::time::timeout(pause, ended.wait_for(|ended| *ended)).await;
    }
}

/// How often files are looked at: often after something was written, seldom when all is quiet.
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(200);

fn note(path: &Path) -> PathBuf {
    path.with_extension("sent")
}

fn noted(path: &Path) -> u64 {
    std::fs::read_to_string(note(path)).ok().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn next_piece(path: &Path, from: u64) -> Option<Vec<u8>> {
    let read = || -> io::Result<Vec<u8>> {
        let file = std::fs::File::open(path)?;
        let left = file.metadata()?.len().saturating_sub(from).min(PIECE as u64) as usize;
        let mut bytes = vec![0; left];
        file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    };
    read().ok().filter(|bytes| !bytes.is_empty())
}
