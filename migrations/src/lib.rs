//! Berth's database schema, one file of SQL a migration. A migration expands first and contracts in a later release, so that
//! each can run under load.

pub use sea_orm_migration::prelude::*;

mod arrays;
mod components;
mod decisions;
mod failed_nodes;
mod fair_share;
mod initial;
mod licenses;
mod node_reasons;
mod power;
mod preemption;
mod reservations;
mod resize;
mod simulations;
mod suspension;

/// All migrations, oldest first.
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(initial::Migration),
            Box::new(decisions::Migration),
            Box::new(fair_share::Migration),
            Box::new(simulations::Migration),
            Box::new(preemption::Migration),
            Box::new(reservations::Migration),
            Box::new(power::Migration),
            Box::new(node_reasons::Migration),
            Box::new(licenses::Migration),
            Box::new(arrays::Migration),
            Box::new(resize::Migration),
            Box::new(failed_nodes::Migration),
            Box::new(components::Migration),
            Box::new(suspension::Migration),
        ]
    }
}
