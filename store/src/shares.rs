//! The tree of shares: what tenants, accounts and users are given, and how the leader last saw it in use.

use std::collections::BTreeMap;

use berth_model::Name;
use berth_model::association::{Association, AssociationKey, Share, Terms};
use berth_model::event::Event;
use jiff::Timestamp;
use sqlx::PgConnection;
use sqlx::types::Json;

use crate::db::At;
use crate::events::{self, NewEvent};
use crate::feed::name;
use crate::lease::Epoch;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// Account, user, the account's parent, terms. No account: the tenant itself.
type Place = (String, Option<String>, Option<String>, Option<String>, Json<Terms>);

/// A tenant's part of the tree was changed: the leader reads all of it again.
pub(crate) async fn changed(connection: &mut PgConnection, tenant: &str) -> Result<(), StoreError> {
    events::append(connection, &[NewEvent { kind: "shares.changed", tenant: Some(tenant.to_owned()), ..NewEvent::default() }]).await
}

/// All places of these tenants, or of all, one event a tenant. Of a tenant that is gone there are none.
pub(crate) async fn associations(connection: &mut PgConnection, only: Option<&[String]>) -> Result<Vec<Event>, StoreError> {
    let rows: Vec<Place> = sqlx::query_as(
        "select name, null, null, null, terms from tenants where $1::text[] is null or name = any($1)
         union all select tenant, name, null, parent, terms from accounts where $1::text[] is null or tenant = any($1)
         union all select tenant, account, user_name, null, terms from associations where $1::text[] is null or tenant = any($1)",
    )
    .bind(only)
    .fetch_all(connection)
    .await?;
    let mut trees: BTreeMap<String, Vec<Association>> = only.unwrap_or_default().iter().map(|t| (t.clone(), Vec::new())).collect();
    for (tenant, account, user, parent, terms) in rows {
        let key = AssociationKey {
            tenant: name(&tenant)?,
            account: account.as_deref().map(name).transpose()?,
            user: user.as_deref().map(name).transpose()?,
        };
        let parent = parent.as_deref().map(name).transpose()?;
        trees.entry(tenant).or_default().push(Association { key, parent, terms: terms.0 });
    }
    trees.into_iter().map(|(tenant, places)| Ok(Event::Associations { tenant: name(&tenant)?, places })).collect()
}

impl Db {
    pub(crate) async fn tell_shares(&self, tenant: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        changed(&mut connection, tenant).await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }

    /// What binds a user of an account, from the user up to the tenant. Places that are not written down have the default terms.
    pub async fn chain(&self, key: &AssociationKey) -> Result<Vec<(AssociationKey, Terms)>, StoreError> {
        let (tenant, account, user) = (key.tenant.as_str(), key.account.as_ref().map(Name::as_str), key.user.as_ref().map(Name::as_str));
        let accounts: Vec<(String, Json<Terms>)> = sqlx::query_as(
            "with recursive up as (
                 select name, parent, terms, 1 as depth from accounts where tenant = $1 and name = $2
                 union all select a.name, a.parent, a.terms, up.depth + 1 from up join accounts a on a.tenant = $1 and a.name = up.parent
                 where up.depth < 64)
             select name, terms from up order by depth",
        )
        .bind(tenant)
        .bind(account)
        .fetch_all(&self.pool)
        .await?;
        let own: Option<Json<Terms>> =
            sqlx::query_scalar("select terms from associations where tenant = $1 and account = $2 and user_name = $3")
                .bind(tenant)
                .bind(account)
                .bind(user)
                .fetch_optional(&self.pool)
                .await?;
        let top: Option<Json<Terms>> =
            sqlx::query_scalar("select terms from tenants where name = $1").bind(tenant).fetch_optional(&self.pool).await?;
        let terms = |found: Option<Json<Terms>>| found.map(|t| t.0).unwrap_or_default();
        let mut chain = vec![(key.clone(), terms(own))];
        for (account, terms) in accounts {
            chain.push((AssociationKey::account(key.tenant.clone(), name(&account)?), terms.0));
        }
        chain.push((AssociationKey::tenant(key.tenant.clone()), terms(top)));
        Ok(chain)
    }

    /// Writes the parts of the tree that changed, by tenant. `Fenced` if the epoch has passed.
    pub async fn write_shares(&self, epoch: Epoch, at: Timestamp, trees: &[(Name, Vec<Share>)]) -> Result<(), StoreError> {
        if trees.is_empty() {
            return Ok(());
        }
        let mut tx = self.begin_fenced(epoch).await?;
        sqlx::query(
            "insert into share_trees (tenant, lines, as_of) select u.tenant, u.lines::jsonb, $3 from unnest($1::text[], $2::text[]) u (tenant, lines)
             on conflict (tenant) do update set lines = excluded.lines, as_of = excluded.as_of",
        )
        .bind(trees.iter().map(|(tenant, _)| tenant.as_str()).collect::<Vec<_>>())
        .bind(trees.iter().map(|(_, lines)| serde_json::to_string(lines)).collect::<Result<Vec<_>, _>>()?)
        .bind(At(at))
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }

    /// The tree as of the leader's last look, of one tenant or of all, with the instant of each tenant's part.
    pub async fn shares(&self, tenant: Option<&str>) -> Result<Vec<(Vec<Share>, Timestamp)>, StoreError> {
        let rows: Vec<(Json<Vec<Share>>, At)> = sqlx::query_as(
            "select s.lines, s.as_of from share_trees s join tenants t on t.name = s.tenant where $1::text is null or s.tenant = $1 order by s.tenant",
        )
        .bind(tenant)
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|(lines, at)| (lines.0, at.0)).collect())
    }
}
