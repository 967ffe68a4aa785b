//! srun's options. Source: srun manual. Those that make no sense inside a Berth job are taken and ignored, so that scripts run
//! unchanged; one that would change what runs and cannot be honoured is an error.

use berth_model::Bytes;
use berth_model::amount::{MIB, parse_time_limit};
use berth_model::resources::Gpus;
use berth_model::step::StepSpec;

/// What the line asks for.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub spec: StepSpec,
    /// `--label`: each line after its task's rank.
    pub label: bool,
    pub quiet: bool,
    /// `--export`; absent: all.
    pub export: Option<String>,
    /// `--output` or `--error` was given: what goes to files is not printed.
    pub prints_stdout: bool,
    pub prints_stderr: bool,
    /// `--input` is `none` or a file: srun's own input is left alone.
    pub has_no_input: bool,
    pub help: bool,
}

/// Known, without effect, with a value.
const IGNORED_WITH_VALUE: [&str; 22] = [
    "mpi",
    "cpu-bind",
    "mem-bind",
    "gpu-bind",
    "distribution",
    "hint",
    "account",
    "partition",
    "qos",
    "wait",
    "threads",
    "slurmd-debug",
    "cpu-freq",
    "accel-bind",
    "ntasks-per-core",
    "ntasks-per-socket",
    "network",
    "comment",
    "jobid",
    "cores-per-socket",
    "sockets-per-node",
    "threads-per-core",
];
/// Known, without effect, alone.
const IGNORED: [&str; 9] =
    ["unbuffered", "verbose", "exact", "whole", "no-kill", "preserve-env", "propagate", "oversubscribe", "spread-job"];

/// Reads srun's line. `Err`: what is wrong with it, in words.
pub fn parse(args: Vec<String>) -> Result<Options, String> {
    let mut options = Options { prints_stdout: true, prints_stderr: true, ..Options::default() };
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            options.spec.command.extend(args.by_ref());
        } else if !arg.starts_with('-') || arg == "-" {
            options.spec.command.push(arg);
            options.spec.command.extend(args.by_ref());
        } else {
            let (name, value) = split(&arg);
            options.take(&name, value, &mut args)?;
        }
    }
    if options.spec.command.is_empty() && !options.help {
        return Err("there is no program to run; for example srun hostname".to_owned());
    }
    Ok(options)
}

/// `--name=value`, `-n4`, `-n=4` or a name alone; short names are given as long ones.
fn split(arg: &str) -> (String, Option<String>) {
    if let Some(long) = arg.strip_prefix("--") {
        return match long.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (long.to_owned(), None),
        };
    }
    let mut letters = arg[1..].chars();
    let letter = letters.next().unwrap_or(' ');
    let glued = letters.as_str().strip_prefix('=').unwrap_or(letters.as_str());
    let name = match letter {
        'n' => "ntasks",
        'N' => "nodes",
        'c' => "cpus-per-task",
        'G' => "gpus",
        'l' => "label",
        'o' => "output",
        'e' => "error",
        'i' => "input",
        't' => "time",
        'w' => "nodelist",
        'D' => "chdir",
        'J' => "job-name",
        's' => "overlap",
        'K' => "kill-on-bad-exit",
        'u' => "unbuffered",
        'v' => "verbose",
        'Q' => "quiet",
        'm' => "distribution",
        'A' => "account",
        'p' => "partition",
        'q' => "qos",
        'W' => "wait",
        'k' => "no-kill",
        'h' => "help",
        _ => return (arg.to_owned(), None),
    };
    (name.to_owned(), (!glued.is_empty()).then(|| glued.to_owned()))
}

impl Options {
    fn take(&mut self, name: &str, value: Option<String>, args: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let spec = &mut self.spec;
        match name {
            "label" => self.label = true,
            "quiet" => self.quiet = true,
            "help" => self.help = true,
            "overlap" => spec.overlap = true,
            "exclusive" => spec.exclusive = true,
            // Given alone it means 1.
            "kill-on-bad-exit" => spec.kill_on_bad_exit = value.as_deref() != Some("0"),
            "multi-prog" | "pty" | "bcast" | "het-group" => return Err(format!("--{name} is not supported")),
            _ if IGNORED.contains(&name) || (name.starts_with('v') && name.chars().all(|c| c == 'v')) => {}
            _ => {
                let mut needed = || value.clone().or_else(|| args.next()).ok_or_else(|| format!("--{name} needs a value"));
                match name {
                    "ntasks" => spec.tasks = Some(count(name, &needed()?)?),
                    // A range's least is enough: the allocation is there already.
                    "nodes" => spec.nodes = Some(count(name, needed()?.split('-').next().unwrap_or_default())?),
                    "ntasks-per-node" | "tasks-per-node" => spec.tasks_per_node = Some(count(name, &needed()?)?),
                    "cpus-per-task" => spec.cpus_per_task = Some(count(name, &needed()?)?),
                    "gpus" => spec.gpus = Some(gpus(name, &needed()?)?),
                    "gpus-per-node" => spec.gpus_per_node = Some(gpus(name, &needed()?)?),
                    "gpus-per-task" | "ntasks-per-gpu" => spec.gpus_per_task = Some(gpus(name, &needed()?)?),
                    "gres" => spec.gpus_per_node = Some(gres(&needed()?)?),
                    "mem" => {
                        let text = needed()?;
                        let bytes =
                            Bytes::parse(&text, MIB).ok_or_else(|| format!("--mem={text} is not an amount of memory; for example 4G"))?;
                        spec.memory_bytes = Some(bytes).filter(|b| b.0 > 0);
                    }
                    "time" => {
                        let text = needed()?;
                        spec.time_limit_seconds =
                            parse_time_limit(&text).map_err(|f| format!("--time={text}: {}; {}", f.detail, f.help))?;
                    }
                    "nodelist" => spec.nodelist = Some(needed()?),
                    "chdir" => spec.working_directory = Some(needed()?),
                    "job-name" => spec.name = Some(needed()?),
                    "output" => {
                        spec.stdout = Some(needed()?);
                        self.prints_stdout = false;
                        self.prints_stderr = spec.stderr.is_some() && self.prints_stderr;
                    }
                    "error" => {
                        spec.stderr = Some(needed()?);
                        self.prints_stderr = false;
                    }
                    "input" => {
                        let text = needed()?;
                        (spec.stdin, spec.stdin_task, self.has_no_input) = match text.as_str() {
                            "all" => (None, None, false),
                            "none" => (None, None, true),
                            task if task.bytes().all(|b| b.is_ascii_digit()) && !task.is_empty() => {
                                let task = task.parse().map_err(|_| format!("--input={task} is not a task's rank"))?;
                                (None, Some(task), false)
                            }
                            _ => (Some(text), None, true),
                        };
                    }
                    "export" => self.export = Some(needed()?),
                    _ if IGNORED_WITH_VALUE.contains(&name) => {
                        needed()?;
                    }
                    _ => return Err(format!("there is no option {name}; see srun --help")),
                }
            }
        }
        Ok(())
    }
}

fn count(name: &str, text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("--{name}={text} is not a count; use 1 or more"))
}

fn gpus(name: &str, text: &str) -> Result<Gpus, String> {
    text.parse().map_err(|_| format!("--{name}={text} is not a count of GPUs; for example 2 or h100:2"))
}

/// `gpu:2`, `gpu:h100:2`, `gpu`, `none`.
fn gres(text: &str) -> Result<Gpus, String> {
    match text.strip_prefix("gpu") {
        _ if text == "none" => Ok(Gpus { kind: None, count: 0 }),
        Some("") => Ok(Gpus { kind: None, count: 1 }),
        Some(rest) if rest.starts_with(':') => gpus("gres", &rest[1..]),
        _ => Err(format!("--gres={text}: only gpu is known; for example gpu:2")),
    }
}

pub const HELP: &str = "Run a program in parallel inside this job.

Usage: srun [OPTIONS] PROGRAM [ARGS…]

  -n, --ntasks=N            tasks            -N, --nodes=N        nodes
      --ntasks-per-node=N   tasks a node     -c, --cpus-per-task=N
  -G, --gpus=[TYPE:]N       GPUs             --gpus-per-node, --gpus-per-task, --gres=gpu:N
      --mem=SIZE            memory a node    -t, --time=TIME      time limit of the step
  -w, --nodelist=NODES      these nodes      -D, --chdir=DIR      working directory
  -o, --output=FILE         output to a file (%t: task, %N: node, %j: job)
  -e, --error=FILE          errors to a file -i, --input=FILE     standard input: a file, all, none or a task's rank
  -l, --label               each line after its task's rank
  -K, --kill-on-bad-exit    one bad end ends all
      --overlap             share CPUs and GPUs with other steps
      --export=NONE|ALL|A,B=c   which variables go along
  -J, --job-name=NAME       name of the step

Without options the step has the job's own tasks. It ends with the highest exit code of its tasks.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        parse(line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn the_options_of_usual_scripts_are_read() {
        let options = read(
            "--mpi=pmix -N 2 -n4 --ntasks-per-node=2 --gres=gpu:h100:1 --mem 2G -l -K --cpu-bind none -t 5 -o x-%t.out python -n 3 --label",
        )
        .unwrap();
        let spec = options.spec;
        assert_eq!((spec.nodes, spec.tasks, spec.tasks_per_node), (Some(2), Some(4), Some(2)));
        assert_eq!(spec.gpus_per_node, Some("h100:1".parse().unwrap()));
        assert_eq!((spec.memory_bytes, spec.time_limit_seconds), (Some(Bytes(2 << 30)), Some(300)));
        assert_eq!(spec.command, ["python", "-n", "3", "--label"]);
        assert!(options.label && spec.kill_on_bad_exit && !options.prints_stdout && !options.prints_stderr);
        assert_eq!(spec.stdout.as_deref(), Some("x-%t.out"));
    }

    #[test]
    fn errors_say_what_would_be_right() {
        for (line, part) in [
            ("--frobnicate x", "no option frobnicate"),
            ("-n 0 x", "--ntasks=0"),
            ("-n", "needs a value"),
            ("--mem=lots x", "for example 4G"),
            ("--gres=fpga:1 x", "only gpu"),
            ("--pty bash", "--pty is not supported"),
            ("-N2", "no program"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
        for (line, stdin, task, has_none) in [
            ("-i none x", None, None, true),
            ("-i all x", None, None, false),
            ("-i1 x", None, Some(1), false),
            ("--input=f x", Some("f"), None, true),
        ] {
            let options = read(line).unwrap();
            assert_eq!((options.spec.stdin.as_deref(), options.spec.stdin_task, options.has_no_input), (stdin, task, has_none), "{line}");
        }
        assert!(read("--kill-on-bad-exit=0 x").is_ok_and(|o| !o.spec.kill_on_bad_exit));
    }
}
