//! The keys with which api replicas sign node and job tokens.

use crate::{Db, StoreError};

/// A signing key as stored.
pub struct SigningKey {
    pub kid: String,
    pub pkcs8: Vec<u8>,
}

impl Db {
    /// All signing keys, the newest first.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKey>, StoreError> {
        let rows: Vec<(String, Vec<u8>)> =
            sqlx::query_as("select kid, pkcs8 from signing_keys order by created_at desc, kid").fetch_all(&self.pool).await?;
        Ok(rows.into_iter().map(|(kid, pkcs8)| SigningKey { kid, pkcs8 }).collect())
    }

    /// Adds `key` unless there is one already: of several replicas that start at once one wins, and all then read its key.
    pub async fn add_first_signing_key(&self, key: &SigningKey) -> Result<(), StoreError> {
        sqlx::query("insert into signing_keys (kid, pkcs8) select $1, $2 where not exists (select from signing_keys)")
            .bind(&key.kid)
            .bind(&key.pkcs8)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
