//! Policies to compare: how the engine is set. Some have names, others are read from a file.
//!
//! ```toml
//! order = "urgency"          # or "submission", the default
//! patience_seconds = 2592000 # with urgency: who has waited as long goes first
//! depth = 1                  # jobs that hold a planned start, or "all", the default
//! rest = "shortest"          # or "in_order", the default: how jobs beyond the depth are tried
//! prediction = "last_two"    # or "off", the default: lengths that "shortest" compares
//! ```
//!
//! The engine knows no fair share, so there is none to switch off.

use std::path::{Path, PathBuf};

use berth_engine::{Order, Rest, Settings};
use berth_model::Seconds;
use serde::Deserialize;

/// A policy under the name by which it is shown.
#[derive(Clone, Debug)]
pub struct Policy {
    pub name: String,
    pub settings: Settings,
}

#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("{0:?} is no policy; write NAME=FILE, or one of {known}", known = Policy::BUILT_IN.join(", "))]
    Unknown(String),
    #[error("{}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", path.display())]
    Malformed { path: PathBuf, source: toml::de::Error },
    #[error("{}: {detail}", path.display())]
    Contradiction { path: PathBuf, detail: &'static str },
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    order: FileOrder,
    patience_seconds: Option<Seconds>,
    depth: Depth,
    rest: FileRest,
    prediction: Prediction,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileOrder {
    #[default]
    Submission,
    Urgency,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of jobs, or \"all\"")]
enum Depth {
    Jobs(usize),
    All(All),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum All {
    All,
}

impl Default for Depth {
    fn default() -> Self {
        Depth::All(All::All)
    }
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileRest {
    #[default]
    InOrder,
    Shortest,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Prediction {
    #[default]
    Off,
    LastTwo,
}

impl Policy {
    pub const BUILT_IN: [&'static str; 5] = ["easy", "easy-sjbf", "easy-sjbf-predicted", "conservative", "urgency"];

    /// From `NAME=FILE`, or the name of a built-in policy.
    pub fn read(text: &str) -> Result<Policy, PolicyError> {
        match text.split_once('=') {
            Some((name, path)) => Ok(Policy { name: name.to_owned(), settings: read_file(Path::new(path))? }),
            None => Policy::built_in(text).ok_or_else(|| PolicyError::Unknown(text.to_owned())),
        }
    }

    /// `easy`: the head holds a planned start; `-sjbf`: the others are tried shortest first, by limit or as predicted;
    /// `conservative`: every job holds one; `urgency`: [`Settings::urgency`].
    pub fn built_in(name: &str) -> Option<Policy> {
        let easy = Settings { depth: 1, ..Settings::default() };
        let settings = match name {
            "easy" => easy,
            "easy-sjbf" => Settings { rest: Rest::Shortest, ..easy },
            "easy-sjbf-predicted" => Settings { rest: Rest::Shortest, is_predicted: true, ..easy },
            "conservative" => Settings::default(),
            "urgency" => Settings::urgency(),
            _ => return None,
        };
        Some(Policy { name: name.to_owned(), settings })
    }
}

fn read_file(path: &Path) -> Result<Settings, PolicyError> {
    let text = std::fs::read_to_string(path).map_err(|source| PolicyError::Unreadable { path: path.to_owned(), source })?;
    let file: File = toml::from_str(&text).map_err(|source| PolicyError::Malformed { path: path.to_owned(), source })?;
    file.settings().map_err(|detail| PolicyError::Contradiction { path: path.to_owned(), detail })
}

impl File {
    fn settings(self) -> Result<Settings, &'static str> {
        let order = match (self.order, self.patience_seconds) {
            (FileOrder::Submission, None) => Order::Submission,
            (FileOrder::Submission, Some(_)) => return Err("patience_seconds goes with order = \"urgency\""),
            (FileOrder::Urgency, Some(patience_seconds)) => Order::Urgency { patience_seconds },
            (FileOrder::Urgency, None) => return Err("order = \"urgency\" needs patience_seconds; for example 2592000, thirty days"),
        };
        if self.prediction == Prediction::LastTwo && self.rest == FileRest::InOrder {
            return Err("prediction goes with rest = \"shortest\": nothing else looks at lengths");
        }
        Ok(Settings {
            depth: match self.depth {
                Depth::Jobs(jobs) => jobs,
                Depth::All(All::All) => usize::MAX,
            },
            order,
            rest: if self.rest == FileRest::Shortest { Rest::Shortest } else { Rest::InOrder },
            is_predicted: self.prediction == Prediction::LastTwo,
            ..Settings::default()
        })
    }
}
