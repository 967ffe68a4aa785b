//! sea-orm entities of the objects that administrators write. Jobs and what belongs to them are sets, not objects, and have
//! their own SQL in `jobs`, `plan`, `reports` and `settle`.

macro_rules! entity {
    ($(#[$doc:meta])* $module:ident, $table:literal, { $($(#[$attr:meta])* $field:ident : $ty:ty),+ $(,)? }) => {
        $(#[$doc])*
        pub mod $module {
            use sea_orm::entity::prelude::*;

            #[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
            #[sea_orm(table_name = $table)]
            pub struct Model { $($(#[$attr])* pub $field: $ty),+ }

            #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
            pub enum Relation {}

            impl ActiveModelBehavior for ActiveModel {}
        }
    };
}

entity!(
    /// Tenants.
    tenant, "tenants", {
    #[sea_orm(primary_key, auto_increment = false)] name: String,
    display_name: Option<String>,
    is_suspended: bool,
    created_at: TimeDateTimeWithTimeZone,
    version: i64,
    terms: Json,
});

entity!(
    /// Accounts: a tree within a tenant; `terms` are [`berth_model::association::Terms`], here as with tenants and associations.
    account, "accounts", {
    #[sea_orm(primary_key, auto_increment = false)] tenant: String,
    #[sea_orm(primary_key, auto_increment = false)] name: String,
    parent: Option<String>,
    description: Option<String>,
    created_at: TimeDateTimeWithTimeZone,
    version: i64,
    terms: Json,
});

entity!(
    /// Users of a tenant.
    user, "users", {
    #[sea_orm(primary_key, auto_increment = false)] tenant: String,
    #[sea_orm(primary_key, auto_increment = false)] name: String,
    default_account: Option<String>,
    is_suspended: bool,
    created_at: TimeDateTimeWithTimeZone,
    version: i64,
});

entity!(
    /// Which user may charge which account.
    association, "associations", {
    #[sea_orm(primary_key, auto_increment = false)] tenant: String,
    #[sea_orm(primary_key, auto_increment = false)] account: String,
    #[sea_orm(primary_key, auto_increment = false)] user_name: String,
    is_manager: bool,
    version: i64,
    terms: Json,
});

entity!(
    /// Partitions; `spec` is a [`berth_model::policy::Partition`].
    partition, "partitions", {
    #[sea_orm(primary_key, auto_increment = false)] name: String,
    spec: Json,
    version: i64,
});

entity!(
    /// QOS; `spec` is a [`berth_model::policy::Qos`].
    qos, "qos", {
    #[sea_orm(primary_key, auto_increment = false)] name: String,
    spec: Json,
    version: i64,
});

entity!(
    /// The cluster's policy: one row.
    policy, "policy", {
    #[sea_orm(primary_key, auto_increment = false)] only_row: bool,
    spec: Json,
    version: i64,
});

entity!(
    /// Nodes.
    node, "nodes", {
    #[sea_orm(primary_key, auto_increment = false)] name: String,
    inventory: Json,
    features: Vec<String>,
    weight: i32,
    provider: String,
    address: String,
    drivers: Vec<String>,
    worker_version: String,
    is_down: bool,
    flags: Vec<String>,
    reason: Option<String>,
    reason_is_health: bool,
    drain_reason: Option<String>,
    drained_by_health: bool,
    clock_skew_ms: i64,
    registered_at: TimeDateTimeWithTimeZone,
    version: i64,
});

entity!(
    /// Join tokens of nodes; only the hash is kept.
    join_token, "join_tokens", {
    #[sea_orm(primary_key, auto_increment = false)] id: Uuid,
    token_hash: Vec<u8>,
    node_pattern: String,
    uses_left: i32,
    expires_at: TimeDateTimeWithTimeZone,
    created_by: String,
    created_at: TimeDateTimeWithTimeZone,
});
