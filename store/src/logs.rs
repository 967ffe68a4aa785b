//! Jobs' output, in an object store: a local directory, or S3. Never in Postgres.
//!
//! An object a piece: `logs/<job>/<attempt>/<step>/<task>.<stream>/<offset>`. A piece sent twice overwrites itself, so uploads can be
//! repeated; reading lists the pieces in order and checks that they join.

use std::sync::Arc;

use berth_model::state::LogStream;
use berth_model::{JobId, StepId};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use crate::StoreError;

/// Where output is kept.
#[derive(Clone, Debug)]
pub struct LogStore {
    objects: Arc<dyn ObjectStore>,
}

/// One stream of one task of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogKey {
    pub job: JobId,
    pub attempt: u32,
    pub step: StepId,
    pub task: u32,
    pub stream: LogStream,
}

impl LogKey {
    fn folder(&self) -> String {
        format!("logs/{}/{}/{}/{}.{}", self.job, self.attempt, self.step, self.task, self.stream)
    }
}

impl LogStore {
    /// `url` is a directory (`file:///var/lib/berth/logs`, made if absent) or `s3://bucket/prefix` with credentials from the environment.
    pub fn open(url: &str) -> Result<LogStore, StoreError> {
        let objects: Arc<dyn ObjectStore> = if let Some(path) = url.strip_prefix("file://") {
            std::fs::create_dir_all(path).map_err(|e| StoreError::Unavailable(format!("log directory {path}: {e}")))?;
            Arc::new(object_store::local::LocalFileSystem::new_with_prefix(path)?.with_automatic_cleanup(true))
        } else if url.starts_with("s3://") {
            Arc::new(object_store::aws::AmazonS3Builder::from_env().with_url(url).build()?)
        } else {
            return Err(StoreError::Unavailable(format!("log store {url:?} is neither file:///directory nor s3://bucket")));
        };
        Ok(LogStore { objects })
    }

    /// Stores the piece of `key` that begins at `offset`.
    pub async fn put(&self, key: &LogKey, offset: u64, bytes: Bytes) -> Result<(), StoreError> {
        let path = Path::from(format!("{}/{offset:020}", key.folder()));
        self.objects.put(&path, PutPayload::from_bytes(bytes)).await?;
        Ok(())
    }

    /// Bytes of `key` from `offset` on, at most about `limit` (whole pieces). Stops at a gap: the piece is still on its way.
    pub async fn read(&self, key: &LogKey, offset: u64, limit: usize) -> Result<Bytes, StoreError> {
        let mut pieces = self.pieces(key).await?;
        pieces.retain(|p| p.offset + p.size > offset);
        let mut text = Vec::new();
        let mut at = offset;
        for piece in pieces {
            if piece.offset > at || text.len() >= limit {
                break;
            }
            let bytes = self.objects.get(&piece.path).await?.bytes().await?;
            let skip = (at - piece.offset) as usize;
            if skip < bytes.len() {
                text.extend_from_slice(&bytes[skip..]);
                at = piece.offset + bytes.len() as u64;
            }
        }
        Ok(text.into())
    }

    /// The last `limit` bytes of `key`, and the offset at which they begin.
    pub async fn tail(&self, key: &LogKey, limit: u64) -> Result<(u64, Bytes), StoreError> {
        let end = self.pieces(key).await?.last().map_or(0, |p| p.offset + p.size);
        let from = end.saturating_sub(limit);
        Ok((from, self.read(key, from, limit as usize).await?))
    }

    /// The tasks of a step that have written to `stream`, ascending.
    pub async fn tasks(&self, job: JobId, attempt: u32, step: StepId) -> Result<Vec<(u32, LogStream)>, StoreError> {
        let folder = Path::from(format!("logs/{job}/{attempt}/{step}"));
        let listing = self.objects.list_with_delimiter(Some(&folder)).await?;
        let mut tasks: Vec<(u32, LogStream)> = listing
            .common_prefixes
            .iter()
            .filter_map(|p| {
                let (task, stream) = p.filename()?.split_once('.')?;
                Some((task.parse().ok()?, stream.parse().ok()?))
            })
            .collect();
        tasks.sort();
        Ok(tasks)
    }

    async fn pieces(&self, key: &LogKey) -> Result<Vec<Piece>, StoreError> {
        let folder = Path::from(key.folder());
        let mut pieces: Vec<Piece> = self
            .objects
            .list(Some(&folder))
            .try_filter_map(|meta| async move {
                let offset = meta.location.filename().and_then(|n| n.parse().ok());
                Ok(offset.map(|offset| Piece { offset, size: meta.size, path: meta.location }))
            })
            .try_collect()
            .await?;
        pieces.sort_by_key(|p| p.offset);
        Ok(pieces)
    }
}

struct Piece {
    offset: u64,
    size: u64,
    path: Path,
}
