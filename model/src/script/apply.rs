//! Puts options into the spec, one at a time, and remembers where each came from.

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned};

use super::options::{self, OptionInfo};
use super::read::{self, checked, example, unknown};
use super::values::{self, Flaw};
use super::words::Line;
use super::{ExportMode, MAX_FAULTS, Place, containers, when};
use crate::job::{ContainerSpec, JobSpec, OpenMode, RequeueMode};
use crate::{Fault, Name};

/// The spec while it is read.
pub(super) struct Draft {
    pub spec: JobSpec,
    pub export: ExportMode,
    pub warnings: Vec<Fault>,
    pub faults: Vec<Fault>,
    pub cpus_per_gpu: Option<u32>,
    place: Place,
    line: Option<u32>,
    is_overriding: bool,
    /// Which option, on which line, set which JSON path last.
    origins: BTreeMap<&'static str, (&'static str, Option<u32>)>,
}

impl Draft {
    pub fn new(place: Place) -> Self {
        Draft {
            spec: JobSpec::default(),
            export: ExportMode::All,
            warnings: Vec::new(),
            faults: Vec::new(),
            cpus_per_gpu: None,
            place,
            line: None,
            is_overriding: false,
            origins: BTreeMap::new(),
        }
    }

    pub fn apply_line(&mut self, line: &Line) {
        self.line = Some(line.number);
        match &line.words {
            Err(fault) => self.fail(fault.clone()),
            Ok(words) => {
                for given in read::options_of(words) {
                    self.apply_given(given);
                }
            }
        }
    }

    pub fn begin_overrides(&mut self) {
        self.line = None;
        self.is_overriding = true;
    }

    pub fn apply_override(&mut self, name: &str, value: Option<&str>) {
        let given = match options::find_option(name) {
            Some(option) => checked(option, value.map(str::to_owned)),
            None => Err(unknown(&format!("--{}", name.trim_start_matches('-')))),
        };
        self.apply_given(given);
    }

    fn apply_given(&mut self, given: read::Given) {
        let (option, value) = match given {
            Ok(given) => given,
            Err(fault) => return self.fail(fault),
        };
        if let Some(instead) = option.refused {
            let detail = format!("--{} is not supported, and without it the job would not be the one asked for", option.long);
            return self.fail(Fault::new("unsupported_option", format!("--{}", option.long), detail, instead));
        }
        let Some(path) = option.sets else {
            let help = "the job is submitted without it; remove the option to silence this warning";
            return self.warn("unsupported_directive", option, format!("--{} is not supported and has no effect", option.long), help);
        };
        self.origins.insert(path, (option.long, self.line));
        let text = value.unwrap_or_default();
        if let Err(flaw) = self.set(option, &text) {
            let detail = format!("\"{text:.80}\" {flaw}");
            self.fail(Fault::new("invalid_value", format!("--{}", option.long), detail, format!("for example {}", example(option.long))));
        }
    }

    fn fail(&mut self, mut fault: Fault) {
        fault.line = fault.line.or(self.line);
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    fn warn(&mut self, code: &str, option: &OptionInfo, detail: String, help: &str) {
        let mut warning = Fault::new(code, format!("--{}", option.long), detail, help);
        warning.line = self.line;
        if self.warnings.len() < MAX_FAULTS {
            self.warnings.push(warning);
        }
    }

    /// Notes something about the option that set `path`.
    pub fn warn_about(&mut self, path: &str, code: &str, detail: String, help: &str) {
        let warning = self.at_origin(Fault::new(code, path, detail, help));
        self.warnings.push(warning);
    }

    /// Renames a fault's JSON path to the option that set it, with its line.
    pub fn at_origin(&self, fault: Fault) -> Fault {
        // What one option sets is told of the field that comes first.
        let path = match fault.field.as_str() {
            "resources.max_nodes" => "resources.nodes",
            "resources.gpu_share" => "resources.gpus_per_node",
            field => field,
        };
        let is_within = |origin: &str| path.strip_prefix(origin).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']));
        match self.origins.iter().rev().find(|(origin, _)| is_within(origin)) {
            Some((_, (long, line))) => Fault { field: format!("--{long}"), line: *line, ..fault },
            None if path == "script" => fault.at_line(1),
            None => fault,
        }
    }

    /// JSON paths that options have set, with the last option that did.
    pub fn set_paths(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.origins.iter().map(|(path, (long, _))| (*path, *long))
    }

    fn name(&mut self, text: &str) -> Result<Option<Name>, Flaw> {
        let flaw = "is not a name: lower-case letters, digits, dot, underscore and hyphen, beginning with a letter or digit";
        Name::new(text).map(Some).map_err(|_| flaw.to_owned())
    }

    fn set(&mut self, option: &OptionInfo, text: &str) -> Result<(), Flaw> {
        let owned = || Some(text.to_owned());
        match option.long {
            "job-name" => self.spec.name = owned(),
            "partition" => self.spec.partition = self.first_of_list(option, text)?,
            "account" => self.spec.account = self.name(text)?,
            "qos" => self.spec.qos = self.name(text)?,
            "output" => self.spec.stdout = owned(),
            "error" => self.spec.stderr = owned(),
            "input" => self.spec.stdin = owned(),
            "array" => self.spec.array = owned(),
            "constraint" => self.spec.constraint = owned(),
            "prefer" => self.spec.prefer = owned(),
            "exclude" => self.spec.exclude = owned(),
            "nodelist" => self.spec.nodelist = owned(),
            "comment" => self.spec.comment = owned(),
            "wckey" => self.spec.wckey = owned(),
            "licenses" => self.spec.licenses = owned(),
            "reservation" => self.spec.reservation = owned(),
            "chdir" => self.spec.working_directory = Some(self.folder(text)),
            "hold" => self.spec.hold = true,
            "time" => self.spec.time_limit_seconds = Some(values::time_limit(text)?),
            "time-min" => self.spec.time_min_seconds = Some(values::time_limit(text)?),
            "begin" => self.spec.begin = Some(self.instant(text)?),
            "deadline" => self.spec.deadline = Some(self.future(text)?),
            "open-mode" => self.spec.open_mode = open_mode(text)?,
            "requeue" => self.spec.requeue.mode = requeue(text)?,
            "no-requeue" => self.spec.requeue.mode = RequeueMode::Never,
            "nice" => self.spec.nice = nice(text)?,
            "signal" => self.spec.signal = Some(values::signal(text)?),
            "dependency" => (self.spec.dependencies, self.spec.dependency_any) = values::dependencies(text)?,
            "export" => {
                let (mode, variables) = values::export(text)?;
                self.export = mode;
                self.spec.environment.extend(variables);
            }
            "container" | "container-image" => self.container().image = containers::image(text)?,
            "container-readonly" => self.container().read_only_root = true,
            "container-writable" => self.container().read_only_root = false,
            "container-mounts" => {
                let (mounts, ignored) = containers::mounts(text)?;
                self.container().mounts = mounts;
                if !ignored.is_empty() {
                    self.warn(
                        "unsupported_directive",
                        option,
                        format!("mount flags {} have no effect", ignored.join(", ")),
                        "the flags ro and rw are supported; for example /data:/data:ro",
                    );
                }
            }
            _ => self.set_resource(option, text)?,
        }
        Ok(())
    }

    fn set_resource(&mut self, option: &OptionInfo, text: &str) -> Result<(), Flaw> {
        if self.is_overriding && option.long.starts_with("mem") {
            self.forget_memory();
        }
        let resources = &mut self.spec.resources;
        match option.long {
            "nodes" => {
                let (least, most) = values::nodes(text)?;
                (resources.nodes, resources.max_nodes) = (Some(least), most);
            }
            "ntasks" => resources.tasks = Some(values::count(text)?),
            "ntasks-per-node" => resources.tasks_per_node = Some(values::count(text)?),
            "cpus-per-task" => resources.cpus_per_task = Some(values::count(text)?),
            "cpus-per-gpu" => self.cpus_per_gpu = Some(values::count(text)?),
            "mem" => resources.memory_per_node_bytes = Some(values::memory(text)?),
            "mem-per-cpu" => resources.memory_per_cpu_bytes = Some(values::memory(text)?),
            "mem-per-gpu" => resources.memory_per_gpu_bytes = Some(values::memory(text)?),
            "gpus" => resources.gpus = Some(values::gpus(text)?),
            "gpus-per-node" => resources.gpus_per_node = Some(values::gpus(text)?),
            "gpus-per-task" => resources.gpus_per_task = Some(values::gpus(text)?),
            "exclusive" => match text {
                "" => (resources.exclusive, resources.exclusive_user) = (true, false),
                "user" => (resources.exclusive, resources.exclusive_user) = (false, true),
                "mcs" => return Err("needs labels of security, which are not here: say user, or nothing for whole nodes".to_owned()),
                "topo" => return Err("is not supported: say nothing for whole nodes, and name them with --nodelist".to_owned()),
                _ => return Err("is neither user nor nothing".to_owned()),
            },
            "oversubscribe" => {
                (resources.exclusive, resources.exclusive_user) = (false, false);
                self.warn(
                    "never_oversubscribed",
                    option,
                    "nodes are shared, but a CPU or GPU is never given to two jobs at once".to_owned(),
                    "nothing to do: jobs share nodes unless they say --exclusive",
                );
            }
            "sockets-per-node" => resources.sockets_per_node = Some(values::count(text)?),
            "cores-per-socket" => resources.cores_per_socket = Some(values::count(text)?),
            "extra-node-info" => {
                let built = values::sockets(text)?;
                (resources.sockets_per_node, resources.cores_per_socket) = (built.0, built.1);
                resources.threads_per_core = built.2.or(resources.threads_per_core);
            }
            "threads-per-core" => resources.threads_per_core = Some(values::count(text)?),
            "ntasks-per-core" => resources.tasks_per_core = Some(values::count(text)?),
            "hint" => resources.threads_per_core = values::hint(text)?,
            "gres" => {
                let values::Gres { gpus, share, others } = values::gres(text)?;
                if self.is_overriding && gpus.is_some() != share.is_some() {
                    // Whole GPUs on the command line replace a share of the script, and the other way round.
                    resources.gpu_share = None;
                    resources.gpus_per_node = None;
                }
                resources.gpus_per_node = gpus.or(resources.gpus_per_node.take());
                resources.gpu_share = share.or(resources.gpu_share.take());
                for other in others.iter().take(20) {
                    self.warn(
                        "unsupported_gres",
                        option,
                        format!("\"{other:.60}\" is not supported and has no effect"),
                        "gres of types gpu, shard and mps are supported; for example --gres=gpu:h100:8 or --gres=shard:2",
                    );
                }
            }
            other => return Err(format!("belongs to --{other}, which nothing reads")),
        }
        Ok(())
    }

    /// Memory on the command line replaces memory of the script, in whatever way that was written.
    fn forget_memory(&mut self) {
        let fields = ["resources.memory_per_node_bytes", "resources.memory_per_cpu_bytes", "resources.memory_per_gpu_bytes"];
        let resources = &mut self.spec.resources;
        let held = [&mut resources.memory_per_node_bytes, &mut resources.memory_per_cpu_bytes, &mut resources.memory_per_gpu_bytes];
        for (field, held) in fields.into_iter().zip(held) {
            if self.origins.get(field).is_some_and(|(_, line)| line.is_some()) {
                *held = None;
                self.origins.remove(field);
            }
        }
    }

    fn container(&mut self) -> &mut ContainerSpec {
        self.spec.container.get_or_insert_default()
    }

    fn first_of_list(&mut self, option: &OptionInfo, text: &str) -> Result<Option<Name>, Flaw> {
        let first = text.split(',').next().unwrap_or(text);
        let name = self.name(first)?;
        if first.len() < text.len() {
            self.warn(
                "partition_list",
                option,
                format!("of the list \"{text:.80}\" the first partition is used"),
                "name one partition; for example --partition=h100",
            );
        }
        Ok(name)
    }

    /// `--chdir`: relative to where the job is submitted, if that is known.
    fn folder(&self, text: &str) -> String {
        match &self.place.directory {
            Some(here) if !text.is_empty() => {
                let joined = std::path::Path::new(here).join(text);
                joined.components().collect::<std::path::PathBuf>().display().to_string()
            }
            _ => text.to_owned(),
        }
    }

    fn instant(&self, text: &str) -> Result<Timestamp, Flaw> {
        when::instant(text, &self.place.now).ok_or_else(|| {
            let zone = zone_name(&self.place.now);
            format!("is not a time: write it as 2026-01-31T08:00 ({zone}), 16:00, tomorrow or now+1hour")
        })
    }

    fn future(&self, text: &str) -> Result<Timestamp, Flaw> {
        let at = self.instant(text)?;
        if at > self.place.now.timestamp() { Ok(at) } else { Err(format!("is {at}, which has passed")) }
    }
}

/// `UTC`, or the zone's abbreviation.
fn zone_name(now: &Zoned) -> String {
    now.strftime("%Z").to_string()
}

fn open_mode(text: &str) -> Result<OpenMode, Flaw> {
    match text {
        "append" | "a" => Ok(OpenMode::Append),
        "truncate" | "t" => Ok(OpenMode::Truncate),
        _ => Err("is neither append nor truncate".to_owned()),
    }
}

fn requeue(text: &str) -> Result<RequeueMode, Flaw> {
    match text {
        "" => Ok(RequeueMode::Requeue),
        "expedite" => Ok(RequeueMode::Expedite),
        _ => Err("is not a way of requeueing".to_owned()),
    }
}

/// Without a value 100, as Slurm has it.
fn nice(text: &str) -> Result<i32, Flaw> {
    if text.is_empty() { Ok(100) } else { text.parse().map_err(|_| "is not a whole number".to_owned()) }
}
