//! Tenants, accounts, users, associations, partitions, QOS and the cluster's policy: read, put by name, delete. A put is idempotent;
//! with an expected version it fails if the object has changed since.

use berth_model::association::Terms;
use berth_model::policy::{Partition, Policy, Qos};
use sea_orm::{ActiveModelTrait, ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::types::Json;

use crate::entity::{account, association, partition, qos, tenant, user};
use crate::shares;
use crate::wake::Topic;
use crate::{Db, StoreError};

/// An object with its version, for ETags.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<T> {
    pub value: T,
    pub version: i64,
}

fn check_version(expected: Option<i64>, found: Option<i64>, what: &str) -> Result<(), StoreError> {
    match (expected, found) {
        (Some(expected), Some(found)) if expected != found => Err(StoreError::StaleVersion(what.to_owned())),
        (Some(_), None) => Err(StoreError::StaleVersion(what.to_owned())),
        _ => Ok(()),
    }
}

impl Db {
    // Tenants -------------------------------------------------------------------------------------------------------

    pub async fn tenants(&self, after: &str, limit: u64) -> Result<Vec<tenant::Model>, StoreError> {
        Ok(tenant::Entity::find()
            .filter(tenant::Column::Name.gt(after))
            .order_by_asc(tenant::Column::Name)
            .limit(limit)
            .all(&self.orm)
            .await?)
    }

    pub async fn tenant(&self, name: &str) -> Result<tenant::Model, StoreError> {
        tenant::Entity::find_by_id(name).one(&self.orm).await?.ok_or_else(|| StoreError::NotFound(format!("tenant {name}")))
    }

    /// Creates a tenant with its account `default`. `Conflict` if there is one of that name.
    pub async fn create_tenant(&self, name: &str, display_name: Option<&str>) -> Result<tenant::Model, StoreError> {
        let mut tx = self.pool.begin().await?;
        let created = sqlx::query("insert into tenants (name, display_name) values ($1, $2) on conflict do nothing")
            .bind(name)
            .bind(display_name)
            .execute(&mut *tx)
            .await?;
        if created.rows_affected() == 0 {
            return Err(StoreError::Conflict {
                code: "already_exists",
                detail: format!("there is a tenant {name} already"),
                help: "choose another name, or change the existing tenant with PATCH".to_owned(),
            });
        }
        sqlx::query("insert into accounts (tenant, name, description) values ($1, 'default', 'For users with no other account')")
            .bind(name)
            .execute(&mut *tx)
            .await?;
        shares::changed(&mut tx, name).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        self.tenant(name).await
    }

    pub async fn update_tenant(
        &self,
        name: &str,
        expected: Option<i64>,
        display_name: Option<Option<String>>,
        is_suspended: Option<bool>,
        terms: Option<&Terms>,
    ) -> Result<tenant::Model, StoreError> {
        let found = self.tenant(name).await?;
        check_version(expected, Some(found.version), &format!("tenant {name}"))?;
        let mut tx = self.pool.begin().await?;
        let updated: u64 = sqlx::query(
            "update tenants set display_name = case when $3 then $4 else display_name end, is_suspended = coalesce($5, is_suspended),
                 terms = coalesce($6, terms), version = version + 1
             where name = $1 and version = $2",
        )
        .bind(name)
        .bind(found.version)
        .bind(display_name.is_some())
        .bind(display_name.flatten())
        .bind(is_suspended)
        .bind(terms.map(Json))
        .execute(&mut *tx)
        .await?
        .rows_affected();
        if updated == 0 {
            return Err(StoreError::StaleVersion(format!("tenant {name}")));
        }
        shares::changed(&mut tx, name).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        self.tenant(name).await
    }

    /// Removes a tenant that never submitted a job. `Conflict` otherwise: its history is kept.
    pub async fn delete_tenant(&self, name: &str) -> Result<(), StoreError> {
        self.tenant(name).await?;
        self.delete_unused(
            "tenant",
            name,
            "select exists (select from jobs where tenant = $1)",
            name,
            "delete from tenants where name = $1",
        )
        .await?;
        self.tell_shares(name).await
    }

    async fn delete_unused(&self, what: &str, name: &str, used: &'static str, key: &str, delete: &'static str) -> Result<(), StoreError> {
        let is_used: bool = sqlx::query_scalar(used).bind(key).fetch_one(&self.pool).await?;
        if is_used {
            return Err(StoreError::Conflict {
                code: "in_use",
                detail: format!("{what} {name} has jobs"),
                help: format!("a {what} with jobs cannot be deleted; wait for them, or suspend it instead"),
            });
        }
        sqlx::query(delete).bind(key).execute(&self.pool).await?;
        Ok(())
    }

    // Accounts, users, associations ---------------------------------------------------------------------------------

    pub async fn accounts(&self, tenant: &str, after: &str, limit: u64) -> Result<Vec<account::Model>, StoreError> {
        let query = account::Entity::find().filter(account::Column::Tenant.eq(tenant)).filter(account::Column::Name.gt(after));
        Ok(query.order_by_asc(account::Column::Name).limit(limit).all(&self.orm).await?)
    }

    pub async fn account(&self, tenant: &str, name: &str) -> Result<account::Model, StoreError> {
        account::Entity::find_by_id((tenant.to_owned(), name.to_owned()))
            .one(&self.orm)
            .await?
            .ok_or_else(|| StoreError::NotFound(format!("account {name}")))
    }

    pub async fn put_account(
        &self,
        tenant: &str,
        name: &str,
        expected: Option<i64>,
        parent: Option<String>,
        description: Option<String>,
        terms: &Terms,
    ) -> Result<account::Model, StoreError> {
        let found = account::Entity::find_by_id((tenant.to_owned(), name.to_owned())).one(&self.orm).await?;
        check_version(expected, found.as_ref().map(|f| f.version), &format!("account {name}"))?;
        let mut ancestor = parent.clone();
        for _ in 0..64 {
            match ancestor {
                None => break,
                Some(above) if above == name => {
                    return Err(berth_model::Fault::new(
                        "account_cycle",
                        "parent",
                        format!("{name} would be its own ancestor"),
                        "choose a parent that is not below this account",
                    )
                    .into());
                }
                Some(above) => {
                    let above = account::Entity::find_by_id((tenant.to_owned(), above.clone())).one(&self.orm).await?.ok_or_else(|| {
                        berth_model::Fault::new(
                            "account_not_found",
                            "parent",
                            format!("there is no account {above}"),
                            "create the parent first, or leave parent out",
                        )
                    })?;
                    ancestor = above.parent;
                }
            }
        }
        let model = account::ActiveModel {
            tenant: Set(tenant.to_owned()),
            name: Set(name.to_owned()),
            parent: Set(parent),
            description: Set(description),
            terms: Set(serde_json::to_value(terms)?),
            version: Set(found.as_ref().map_or(1, |f| f.version + 1)),
            ..Default::default()
        };
        let stored = if found.is_some() { model.update(&self.orm).await? } else { model.insert(&self.orm).await? };
        self.tell_shares(tenant).await?;
        Ok(stored)
    }

    pub async fn delete_account(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        self.account(tenant, name).await?;
        let is_used: bool = sqlx::query_scalar(
            "select exists (select from jobs where tenant = $1 and account = $2) or exists (select from accounts where tenant = $1 and parent = $2)
                or exists (select from users where tenant = $1 and default_account = $2)",
        )
        .bind(tenant)
        .bind(name)
        .fetch_one(&self.pool)
        .await?;
        if is_used {
            return Err(StoreError::Conflict {
                code: "in_use",
                detail: format!("account {name} has jobs, child accounts or users"),
                help: "an account that was used cannot be deleted".to_owned(),
            });
        }
        account::Entity::delete_by_id((tenant.to_owned(), name.to_owned())).exec(&self.orm).await?;
        self.tell_shares(tenant).await
    }

    pub async fn users(&self, tenant: &str, after: &str, limit: u64) -> Result<Vec<user::Model>, StoreError> {
        let query = user::Entity::find().filter(user::Column::Tenant.eq(tenant)).filter(user::Column::Name.gt(after));
        Ok(query.order_by_asc(user::Column::Name).limit(limit).all(&self.orm).await?)
    }

    pub async fn user(&self, tenant: &str, name: &str) -> Result<user::Model, StoreError> {
        self.find_user(tenant, name).await?.ok_or_else(|| StoreError::NotFound(format!("user {name}")))
    }

    pub async fn find_user(&self, tenant: &str, name: &str) -> Result<Option<user::Model>, StoreError> {
        Ok(user::Entity::find_by_id((tenant.to_owned(), name.to_owned())).one(&self.orm).await?)
    }

    pub async fn put_user(
        &self,
        tenant: &str,
        name: &str,
        expected: Option<i64>,
        default_account: Option<String>,
        is_suspended: bool,
    ) -> Result<user::Model, StoreError> {
        let found = self.find_user(tenant, name).await?;
        check_version(expected, found.as_ref().map(|f| f.version), &format!("user {name}"))?;
        if let Some(account) = &default_account {
            self.require_account(tenant, account, "default_account").await?;
        }
        let model = user::ActiveModel {
            tenant: Set(tenant.to_owned()),
            name: Set(name.to_owned()),
            default_account: Set(default_account),
            is_suspended: Set(is_suspended),
            version: Set(found.as_ref().map_or(1, |f| f.version + 1)),
            ..Default::default()
        };
        Ok(if found.is_some() { model.update(&self.orm).await? } else { model.insert(&self.orm).await? })
    }

    pub async fn delete_user(&self, tenant: &str, name: &str) -> Result<(), StoreError> {
        self.user(tenant, name).await?;
        user::Entity::delete_by_id((tenant.to_owned(), name.to_owned())).exec(&self.orm).await?;
        self.tell_shares(tenant).await
    }

    async fn require_account(&self, tenant: &str, name: &str, field: &str) -> Result<(), StoreError> {
        match self.account(tenant, name).await {
            Err(StoreError::NotFound(_)) => Err(berth_model::Fault::new(
                "account_not_found",
                field,
                format!("there is no account {name}"),
                "use an account of the tenant; GET /v1/accounts lists them",
            )
            .into()),
            other => other.map(|_| ()),
        }
    }

    pub async fn associations(
        &self,
        tenant: &str,
        account: Option<&str>,
        user: Option<&str>,
    ) -> Result<Vec<association::Model>, StoreError> {
        let mut query = association::Entity::find().filter(association::Column::Tenant.eq(tenant));
        if let Some(account) = account {
            query = query.filter(association::Column::Account.eq(account));
        }
        if let Some(user) = user {
            query = query.filter(association::Column::UserName.eq(user));
        }
        Ok(query
            .order_by_asc(association::Column::Account)
            .order_by_asc(association::Column::UserName)
            .limit(10_000)
            .all(&self.orm)
            .await?)
    }

    pub async fn put_association(
        &self,
        tenant: &str,
        account: &str,
        user: &str,
        expected: Option<i64>,
        is_manager: bool,
        terms: &Terms,
    ) -> Result<association::Model, StoreError> {
        self.require_account(tenant, account, "account").await?;
        if self.find_user(tenant, user).await?.is_none() {
            return Err(berth_model::Fault::new(
                "user_not_found",
                "user",
                format!("there is no user {user}"),
                "create the user first with PUT /v1/users/{user}",
            )
            .into());
        }
        let mut tx = self.pool.begin().await?;
        let written = sqlx::query(
            "insert into associations as a (tenant, account, user_name, is_manager, terms) select $1, $2, $3, $4, $5
             where $6::bigint is null or exists (select from associations where tenant = $1 and account = $2 and user_name = $3)
             on conflict (tenant, account, user_name) do update set is_manager = $4, terms = $5, version = a.version + 1
             where $6::bigint is null or a.version = $6",
        )
        .bind(tenant)
        .bind(account)
        .bind(user)
        .bind(is_manager)
        .bind(Json(terms))
        .bind(expected)
        .execute(&mut *tx)
        .await?;
        if written.rows_affected() == 0 {
            return Err(StoreError::StaleVersion(format!("association of {user} with {account}")));
        }
        shares::changed(&mut tx, tenant).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        self.association(tenant, account, user).await
    }

    pub async fn association(&self, tenant: &str, account: &str, user: &str) -> Result<association::Model, StoreError> {
        let key = (tenant.to_owned(), account.to_owned(), user.to_owned());
        association::Entity::find_by_id(key)
            .one(&self.orm)
            .await?
            .ok_or_else(|| StoreError::NotFound(format!("association of {user} with {account}")))
    }

    pub async fn delete_association(&self, tenant: &str, account: &str, user: &str) -> Result<(), StoreError> {
        self.association(tenant, account, user).await?;
        association::Entity::delete_by_id((tenant.to_owned(), account.to_owned(), user.to_owned())).exec(&self.orm).await?;
        self.tell_shares(tenant).await
    }

    // Partitions, QOS, policy ---------------------------------------------------------------------------------------

    pub async fn partitions(&self) -> Result<Vec<Versioned<Partition>>, StoreError> {
        let rows = partition::Entity::find().order_by_asc(partition::Column::Name).all(&self.orm).await?;
        rows.into_iter().map(|r| versioned(r.spec, r.version)).collect()
    }

    pub async fn partition(&self, name: &str) -> Result<Versioned<Partition>, StoreError> {
        let row =
            partition::Entity::find_by_id(name).one(&self.orm).await?.ok_or_else(|| StoreError::NotFound(format!("partition {name}")))?;
        versioned(row.spec, row.version)
    }

    /// Puts a partition. If it is the default, the others are no longer.
    pub async fn put_partition(&self, spec: &Partition, expected: Option<i64>) -> Result<Versioned<Partition>, StoreError> {
        let mut tx = self.pool.begin().await?;
        if spec.is_default {
            sqlx::query("update partitions set spec = spec || '{\"is_default\": false}', version = version + 1 where name <> $1 and (spec->>'is_default')::boolean")
                .bind(spec.name.as_str())
                .execute(&mut *tx)
                .await?;
        }
        put_spec(&mut tx, "partitions", spec.name.as_str(), expected, spec).await?;
        policy_event(&mut tx).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        self.partition(spec.name.as_str()).await
    }

    pub async fn delete_partition(&self, name: &str) -> Result<(), StoreError> {
        self.partition(name).await?;
        let live = "select exists (select from jobs where partition = $1 and state in ('pending', 'allocated', 'running', 'suspended', 'completing'))";
        self.delete_unused("partition", name, live, name, "delete from partitions where name = $1").await?;
        self.tell_policy().await
    }

    pub async fn qos_list(&self) -> Result<Vec<Versioned<Qos>>, StoreError> {
        let rows = qos::Entity::find().order_by_asc(qos::Column::Name).all(&self.orm).await?;
        rows.into_iter().map(|r| versioned(r.spec, r.version)).collect()
    }

    pub async fn qos(&self, name: &str) -> Result<Versioned<Qos>, StoreError> {
        let row = qos::Entity::find_by_id(name).one(&self.orm).await?.ok_or_else(|| StoreError::NotFound(format!("qos {name}")))?;
        versioned(row.spec, row.version)
    }

    pub async fn put_qos(&self, spec: &Qos, expected: Option<i64>) -> Result<Versioned<Qos>, StoreError> {
        let mut tx = self.pool.begin().await?;
        put_spec(&mut tx, "qos", spec.name.as_str(), expected, spec).await?;
        policy_event(&mut tx).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        self.qos(spec.name.as_str()).await
    }

    pub async fn delete_qos(&self, name: &str) -> Result<(), StoreError> {
        self.qos(name).await?;
        let live =
            "select exists (select from jobs where qos = $1 and state in ('pending', 'allocated', 'running', 'suspended', 'completing'))";
        self.delete_unused("qos", name, live, name, "delete from qos where name = $1").await?;
        self.tell_policy().await
    }

    pub async fn policy(&self) -> Result<Versioned<Policy>, StoreError> {
        let (spec, version): (Json<Policy>, i64) = sqlx::query_as("select spec, version from policy").fetch_one(&self.pool).await?;
        Ok(Versioned { value: spec.0, version })
    }

    pub async fn put_policy(&self, spec: &Policy, expected: Option<i64>) -> Result<Versioned<Policy>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let updated = sqlx::query("update policy set spec = $1, version = version + 1 where $2::bigint is null or version = $2")
            .bind(Json(spec))
            .bind(expected)
            .execute(&mut *tx)
            .await?;
        if updated.rows_affected() == 0 {
            return Err(StoreError::StaleVersion("policy".to_owned()));
        }
        policy_event(&mut tx).await?;
        tx.commit().await?;
        self.wake.notify(Topic::Events);
        self.policy().await
    }

    async fn tell_policy(&self) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        policy_event(&mut connection).await?;
        self.wake.notify(Topic::Events);
        Ok(())
    }
}

fn versioned<T: DeserializeOwned>(spec: serde_json::Value, version: i64) -> Result<Versioned<T>, StoreError> {
    Ok(Versioned { value: serde_json::from_value(spec)?, version })
}

/// Inserts or replaces a named spec in `partitions`, `qos` or `licenses`.
pub(crate) async fn put_spec<T: Serialize>(
    tx: &mut sqlx::PgConnection,
    table: &str,
    name: &str,
    expected: Option<i64>,
    spec: &T,
) -> Result<(), StoreError> {
    let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new("select version from ");
    query.push(table).push(" where name = ").push_bind(name).push(" for update");
    let found: Option<i64> = query.build_query_scalar().fetch_optional(&mut *tx).await?;
    check_version(expected, found, &format!("{table} {name}"))?;
    let mut query = sqlx::QueryBuilder::<sqlx::Postgres>::new("insert into ");
    query.push(table).push(" as t (name, spec) values (").push_bind(name).push(", ").push_bind(serde_json::to_value(spec)?);
    query.push(") on conflict (name) do update set spec = excluded.spec, version = t.version + 1");
    query.build().execute(&mut *tx).await?;
    Ok(())
}

async fn policy_event(connection: &mut sqlx::PgConnection) -> Result<(), StoreError> {
    crate::events::append(connection, &[crate::events::NewEvent { kind: "policy.changed", ..Default::default() }]).await
}
