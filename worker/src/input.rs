//! Standard input on its way from the service to a step's spool file, from which its tasks on this node read.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use berth_runtime::tasks::INPUT_END;
use reqwest::StatusCode;

use crate::agent::Shared;

/// One step's input.
#[derive(Clone)]
pub struct Input {
    pub shared: Arc<Shared>,
    /// Route of the job's or the step's input.
    pub path: String,
    pub job_token: String,
    pub spool: PathBuf,
}

/// Longest wait for one answer: the service waits less for something to come.
const PATIENCE: Duration = Duration::from_secs(30);

enum Piece {
    Bytes(Vec<u8>),
    /// Nothing yet.
    Nothing,
    End,
}

impl Input {
    /// Gathers until the input's end. An earlier worker process may have begun.
    pub async fn gather(self) {
        let end = self.spool.with_extension(INPUT_END);
        let mut pause = Duration::from_millis(100);
        while !end.exists() {
            match self.next().await {
                Ok(Piece::Bytes(bytes)) => {
                    pause = Duration::from_millis(100);
                    if let Err(error) = append(&self.spool, &bytes) {
                        tracing::warn!(path = %self.spool.display(), %error, "a step's input cannot be kept");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                }
                Ok(Piece::Nothing) => {}
                Ok(Piece::End) => {
                    let _ = std::fs::write(&end, b"");
                }
                Err(error) => {
                    tracing::warn!(route = self.path, error, "a step's input waits");
                    self.shared.client.try_next_server();
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
            }
        }
    }

    async fn next(&self) -> Result<Piece, String> {
        let offset = std::fs::metadata(&self.spool).map_or(0, |m| m.len());
        let client = &self.shared.client;
        let url = format!("{}{}?offset={offset}", client.server(), self.path);
        let response = client.http().get(url).bearer_auth(&self.job_token).timeout(PATIENCE).send().await.map_err(|e| e.to_string())?;
        match response.status() {
            StatusCode::OK => {
                let bytes = response.bytes().await.map_err(|e| e.to_string())?;
                Ok(if bytes.is_empty() { Piece::End } else { Piece::Bytes(bytes.to_vec()) })
            }
            StatusCode::NO_CONTENT => Ok(Piece::Nothing),
            other => Err(format!("the service answered {other}")),
        }
    }
}

/// All of it or, as far as can be, nothing: what is repeated is read from the file's length on.
fn append(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    std::fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes)
}
