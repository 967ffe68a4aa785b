//! The signals that end a command in the foreground.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Numbers of the signals that ask this process to end, as they come: SIGINT, SIGTERM, and SIGHUP unless it is ignored, as under nohup.
pub fn ends() -> anyhow::Result<mpsc::Receiver<u8>> {
    let (sender, receiver) = mpsc::channel(4);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let number = kind.as_raw_value();
        if is_ignored(number) {
            continue;
        }
        let (mut signals, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                let _ = sender.send(u8::try_from(number).unwrap_or(0)).await;
            }
        });
    }
    Ok(receiver)
}

fn is_ignored(number: i32) -> bool {
    // Safety: the pointer is to our own value, filled in by the call, which changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
