//! What can go wrong between a caller and the database, by cause.

/// A failed store call.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not there, or not the caller's.
    #[error("{0} not found")]
    NotFound(String),
    /// The object is not in a state that allows this.
    #[error("{detail}")]
    Conflict { code: &'static str, detail: String, help: String },
    /// The `If-Match` version has passed.
    #[error("{0} was changed in the meantime")]
    StaleVersion(String),
    /// The input refers to something that is not there or may not be used.
    #[error("{0}")]
    Refused(berth_model::Fault),
    /// The lease's epoch has passed: another scheduler leads.
    #[error("the scheduler's lease was taken by another")]
    Fenced,
    /// Postgres cannot be reached or is shutting down: try again in seconds.
    #[error("the database is not reachable: {0}")]
    Unavailable(String),
    #[error("database: {0}")]
    Database(sqlx::Error),
    #[error("stored value cannot be read: {0}")]
    Corrupt(String),
    #[error("log store: {0}")]
    Logs(#[from] object_store::Error),
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                StoreError::Unavailable(error.to_string())
            }
            // Class 57P: shutdown, crash recovery, starting up. Class 08: connection trouble. 53300: too many connections.
            sqlx::Error::Database(db) if db.code().is_some_and(|c| c.starts_with("57P") || c.starts_with("08") || c == "53300") => {
                StoreError::Unavailable(error.to_string())
            }
            _ => StoreError::Database(error),
        }
    }
}

impl From<sea_orm::DbErr> for StoreError {
    fn from(error: sea_orm::DbErr) -> Self {
        match error {
            sea_orm::DbErr::ConnectionAcquire(_) => StoreError::Unavailable(error.to_string()),
            sea_orm::DbErr::Conn(sea_orm::RuntimeErr::SqlxError(e))
            | sea_orm::DbErr::Exec(sea_orm::RuntimeErr::SqlxError(e))
            | sea_orm::DbErr::Query(sea_orm::RuntimeErr::SqlxError(e)) => match std::sync::Arc::try_unwrap(e) {
                Ok(e) => e.into(),
                Err(shared) => StoreError::Corrupt(shared.to_string()),
            },
            other => StoreError::Corrupt(other.to_string()),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        StoreError::Corrupt(error.to_string())
    }
}

impl From<berth_model::Fault> for StoreError {
    fn from(fault: berth_model::Fault) -> Self {
        StoreError::Refused(fault)
    }
}
