//! Standard input of `berth run`, on its way to the job.

use std::convert::Infallible;
use std::io::Read;

use tokio::sync::mpsc;

use super::client::{Client, Outage, is_unreachable};

/// Bytes sent at once.
const PIECE: usize = 256 * 1024;

/// Sends all there is, if `has_input`; then waits for ever. Ends with what went wrong.
pub async fn pass_on(client: &Client, job: &str, has_input: bool) -> anyhow::Error {
    let outcome = if has_input { send(client, job).await } else { Ok(std::future::pending::<Infallible>().await) };
    match outcome {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

async fn send(client: &Client, job: &str) -> anyhow::Result<Infallible> {
    let (pieces, mut read) = mpsc::channel::<std::io::Result<Vec<u8>>>(4);
    // A thread of its own, which a job that ends early need not wait for.
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        loop {
            let piece = std::io::stdin().lock().read(&mut buffer).map(|count| buffer[..count].to_vec());
            let is_last = piece.as_ref().map_or(true, Vec::is_empty);
            if pieces.blocking_send(piece).is_err() || is_last {
                return;
            }
        }
    });
    let mut offset = 0;
    while let Some(piece) = read.recv().await {
        let piece = piece?;
        let query = [("offset", offset.to_string()), ("end", piece.is_empty().to_string())];
        let mut outage = Outage::none();
        while let Err(error) = client.post_bytes(&format!("/v1/jobs/{job}/stdin"), &query, &piece).await {
            if !is_unreachable(&error) {
                return Err(error);
            }
            outage.wait().await?;
        }
        offset += piece.len();
    }
    Ok(std::future::pending().await)
}
