//! Traces as CSV: a header, then one job a line.
//!
//! Columns, in any order: `submit_s`, `nodes`, `cpus`, `runtime_s`, `walltime_s`; and if there are any `user`, `account`, `gpus`,
//! `gpu_type` (`A100|H100`: either), `mem_mb`. Other columns are left alone. No quotes: no field holds a comma. An empty field is 0.

use super::{BadLine, Trace, TraceJob, check_seconds};

pub fn parse(text: &str) -> Result<Trace, BadLine> {
    let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let Some((header, _)) = lines.next() else { return Ok(Trace::default()) };
    let columns = Columns::of(header).map_err(|detail| BadLine { line: 1, detail })?;
    let jobs = lines.map(|(line, number)| columns.job(line).map_err(|detail| BadLine { line: number, detail }));
    Ok(Trace::of(jobs.collect::<Result<_, _>>()?, 0))
}

/// Where each column is.
struct Columns<'a> {
    names: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(header: &'a str) -> Result<Self, String> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let missing: Vec<&str> =
            ["submit_s", "nodes", "cpus", "runtime_s", "walltime_s"].into_iter().filter(|name| !names.contains(name)).collect();
        if missing.is_empty() { Ok(Columns { names }) } else { Err(format!("the header has no column {}", missing.join(", "))) }
    }

    fn job(&self, line: &str) -> Result<TraceJob, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != self.names.len() {
            return Err(format!("{} fields, but the header names {}", fields.len(), self.names.len()));
        }
        let row = Row { names: &self.names, fields };
        let job = TraceJob {
            submit: row.seconds("submit_s")?,
            user: row.text("user").to_owned(),
            account: row.text("account").to_owned(),
            nodes: row.at_least_one("nodes")? as u32,
            cpus: u32::try_from(row.whole("cpus")?).map_err(|_| "cpus: too many".to_owned())?,
            gpus: row.gpus()?,
            gpu_types: row.text("gpu_type").split('|').filter(|kind| !kind.is_empty()).map(str::to_ascii_lowercase).collect(),
            memory_mib: row.whole("mem_mb")?,
            runtime: row.seconds("runtime_s")?,
            walltime: check_seconds("walltime_s", row.at_least_one("walltime_s")?)?,
        };
        if job.cpus == 0 && job.gpus == 0.0 { Err("asks for neither cpus nor gpus".to_owned()) } else { Ok(job) }
    }
}

struct Row<'a> {
    names: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn text(&self, column: &str) -> &'a str {
        self.names.iter().position(|name| *name == column).map_or("", |at| self.fields[at])
    }

    fn whole(&self, column: &str) -> Result<u64, String> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(0);
        }
        text.parse().map_err(|_| format!("{column}: {text:?} is not a whole number"))
    }

    fn at_least_one(&self, column: &str) -> Result<u64, String> {
        let number = self.whole(column)?;
        if (1..=u64::from(u32::MAX)).contains(&number) { Ok(number) } else { Err(format!("{column}: {number}, but at least 1 is needed")) }
    }

    fn seconds(&self, column: &str) -> Result<u64, String> {
        check_seconds(column, self.whole(column)?)
    }

    fn gpus(&self) -> Result<f64, String> {
        let text = self.text("gpus");
        if text.is_empty() {
            return Ok(0.0);
        }
        let count: f64 = text.parse().map_err(|_| format!("gpus: {text:?} is not a number"))?;
        if (0.0..=65_535.0).contains(&count) { Ok(count) } else { Err(format!("gpus: {text} is not between 0 and 65535")) }
    }
}
