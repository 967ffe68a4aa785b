//! `srun`: opens a step, prints what its tasks write, passes signals on, ends with the highest exit code.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::options::{self, HELP, Options};

pub fn main(args: Vec<String>) -> ExitCode {
    let mut options = match options::parse(args) {
        Ok(options) => options,
        Err(fault) => return fail(&fault),
    };
    if options.help {
        let _ = std::io::stdout().write_all(HELP.as_bytes());
        return ExitCode::SUCCESS;
    }
    let Some(agent) = Agent::of_this_job() else {
        return fail("this is not inside a Berth job; `berth run` starts one");
    };
    add_surroundings(&mut options);
    // Slurm's default: what srun reads all its tasks read.
    options.spec.stream_stdin = !options.has_no_input && berth_runtime::files::has_input();
    // Before any other thread is there, so that all of them leave signals to one.
    let signals = Signals::block();
    let step = match open(&agent, &options) {
        Ok(step) => step,
        Err(fault) => return fail(&fault),
    };
    let agent = Arc::new(agent);
    signals.forward(agent.clone(), step.clone());
    if options.spec.stream_stdin {
        let (agent, step) = (agent.clone(), step.clone());
        std::thread::spawn(move || pass_input(&agent, &step));
    }
    match follow(&agent, &step, &options) {
        Ok(code) => ExitCode::from(code),
        Err(fault) => fail(&fault),
    }
}

fn fail(text: &str) -> ExitCode {
    eprintln!("srun: error: {text}");
    ExitCode::FAILURE
}

/// The variables and the folder that the step inherits.
fn add_surroundings(options: &mut Options) {
    let spec = &mut options.spec;
    // As Slurm's srun reads it: what the job asked for holds for its steps.
    if spec.gpus.is_none() && spec.gpus_per_node.is_none() && spec.gpus_per_task.is_none() {
        spec.gpus_per_task = std::env::var("SLURM_GPUS_PER_TASK").ok().and_then(|text| text.parse().ok());
    }
    let all: BTreeMap<String, String> = std::env::vars().collect();
    match options.export.as_deref() {
        None | Some("ALL") => spec.environment = all,
        Some("NONE") => {}
        Some(list) => {
            for item in list.split(',') {
                match item.split_once('=') {
                    Some((name, value)) => _ = spec.environment.insert(name.to_owned(), value.to_owned()),
                    None if item == "ALL" => spec.environment.extend(all.clone()),
                    None => spec.environment.extend(all.get(item).map(|v| (item.to_owned(), v.clone()))),
                }
            }
        }
    }
    // Where it is called, if that is there on the step's nodes too; the job's scratch folder is another on each.
    let here = std::env::current_dir().ok().map(|d| d.display().to_string());
    let scratch = std::env::var("TMPDIR").ok();
    match here.filter(|dir| Some(dir) != scratch.as_ref()) {
        Some(dir) => _ = spec.environment.insert("PWD".to_owned(), dir),
        None => _ = spec.environment.remove("PWD"),
    }
}

/// Opens the step, waiting while other steps use what it needs. Gives its id.
fn open(agent: &Agent, options: &Options) -> Result<String, String> {
    let body = serde_json::to_value(&options.spec).map_err(|e| e.to_string())?;
    let mut pause = Duration::from_millis(50);
    let mut tries = 0;
    let mut has_told = options.quiet;
    loop {
        match agent.post("/v1/steps", &body) {
            Ok(answer) => return Ok(answer["step_id"].to_string()),
            Err(refusal) if refusal.code == "step_busy" => {
                if !has_told && pause > Duration::from_millis(500) {
                    eprintln!("srun: the step waits: {}", refusal.text);
                    has_told = true;
                }
            }
            // Refused before it reached the service: nothing was opened.
            Err(refusal) if refusal.code == "unavailable" && tries < MAX_TRIES => tries += 1,
            Err(refusal) => return Err(refusal.text),
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

/// Tries to reach a service that is away: about a minute.
const MAX_TRIES: u32 = 60;

/// Bytes of input passed on at once.
const PIECE: usize = 256 * 1024;

/// Passes standard input on to the step, piece by piece, until its end.
fn pass_input(agent: &Agent, step: &str) {
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let count = match std::io::stdin().lock().read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                eprintln!("srun: error: standard input cannot be read: {error}");
                0
            }
        };
        let path = format!("/v1/steps/{step}/stdin?offset={offset}&end={}", count == 0);
        let mut tries = 0;
        while let Err(refusal) = agent.post_bytes(&path, &buffer[..count]) {
            tries += 1;
            if refusal.code == "unavailable" && tries < MAX_TRIES {
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
            // Half an input is worse than none: the tasks must not take it for the whole.
            eprintln!("srun: error: standard input: {}", refusal.text);
            let _ = agent.post(&format!("/v1/steps/{step}:signal"), &json!({ "signal": "SIGKILL" }));
            return;
        }
        if count == 0 {
            return;
        }
        offset += count;
    }
}

/// Prints until the end. A stream that breaks is taken up where it broke.
fn follow(agent: &Agent, step: &str, options: &Options) -> Result<u8, String> {
    let mut printer = Printer { options, open_lines: BTreeMap::new() };
    let mut cursor = String::new();
    let mut tries = 0;
    loop {
        let stream = match agent.get(&format!("/v1/steps/{step}/stream?cursor={cursor}")) {
            Ok(stream) => stream,
            Err(refusal) if refusal.code == "unavailable" && tries < MAX_TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_secs(1));
                continue;
            }
            Err(refusal) => return Err(refusal.text),
        };
        for line in stream.lines() {
            let Ok(line) = line else { break };
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            tries = 0;
            if let Some(at) = event["cursor"].as_str() {
                at.clone_into(&mut cursor);
            }
            if let Some(code) = printer.event(&event) {
                return Ok(code);
            }
        }
        tries += 1;
        if tries > MAX_TRIES {
            return Err("the service cannot be reached".to_owned());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

struct Printer<'a> {
    options: &'a Options,
    /// With labels: lines that are not whole yet, by task and stream.
    open_lines: BTreeMap<(u64, bool), Vec<u8>>,
}

impl Printer<'_> {
    /// The exit code, at the end.
    fn event(&mut self, event: &Value) -> Option<u8> {
        let task = event["task"].as_u64().unwrap_or(0);
        match event["type"].as_str()? {
            "output" => self.output(task, event["stream"] == "stderr", &bytes_of(event)),
            "exit" if !self.options.quiet => match (event["code"].as_i64(), event["signal"].as_i64()) {
                (Some(0), _) => {}
                (Some(code), _) => eprintln!("srun: error: task {task}: Exited with exit code {code}"),
                (None, Some(signal)) => eprintln!("srun: error: task {task}: Ended by signal {signal}"),
                (None, None) => {}
            },
            "failure" => {
                eprintln!("srun: error: {}: {}", event["cause"].as_str().unwrap_or_default(), event["detail"].as_str().unwrap_or_default())
            }
            "end" => {
                self.flush();
                let code = event["exit_code"].as_i64().unwrap_or(1);
                return Some(u8::try_from(code).unwrap_or(1));
            }
            _ => {}
        }
        None
    }

    fn output(&mut self, task: u64, is_stderr: bool, text: &[u8]) {
        let is_printed = if is_stderr { self.options.prints_stderr } else { self.options.prints_stdout };
        if !is_printed {
            return;
        }
        if !self.options.label {
            return print(is_stderr, text);
        }
        let open = self.open_lines.entry((task, is_stderr)).or_default();
        open.extend_from_slice(text);
        while let Some(end) = open.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = open.drain(..=end).collect();
            print(is_stderr, &[format!("{task}: ").as_bytes(), &line].concat());
        }
    }

    fn flush(&mut self) {
        for ((task, is_stderr), line) in std::mem::take(&mut self.open_lines) {
            if !line.is_empty() {
                print(is_stderr, &[format!("{task}: ").as_bytes(), &line, b"\n"].concat());
            }
        }
    }
}

/// What a task wrote, byte for byte: text that is not UTF-8 comes in base64.
fn bytes_of(event: &Value) -> Vec<u8> {
    let exact = event["base64"].as_str().and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
    exact.unwrap_or_else(|| event["text"].as_str().unwrap_or_default().as_bytes().to_vec())
}

fn print(is_stderr: bool, text: &[u8]) {
    // A reader that went away ends the printing, not the step.
    if is_stderr {
        let _ = std::io::stderr().write_all(text);
    } else {
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(text).and_then(|()| out.flush());
    }
}

/// Signals that are passed on to the step.
const FORWARDED: [(i32, &str); 8] = [
    (libc::SIGINT, "SIGINT"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGCONT, "SIGCONT"),
];

struct Signals(libc::sigset_t);

impl Signals {
    fn block() -> Signals {
        // Safety: the set is a plain value of ours, filled in by these calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for (signal, _) in FORWARDED {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            Signals(set)
        }
    }

    /// Passes signals on from a thread of its own.
    fn forward(self, agent: Arc<Agent>, step: String) {
        let count = AtomicU32::new(0);
        std::thread::spawn(move || {
            loop {
                let mut signal = 0;
                // Safety: both pointers are to our own values.
                if unsafe { libc::sigwait(&self.0, &mut signal) } != 0 {
                    return;
                }
                let Some((_, name)) = FORWARDED.iter().find(|(number, _)| *number == signal) else { continue };
                let is_end = matches!(signal, libc::SIGINT | libc::SIGTERM);
                // Asked a third time, it does not wait for its tasks any more.
                if is_end && count.fetch_add(1, Ordering::Relaxed) >= 2 {
                    std::process::exit(128 + signal);
                }
                let _ = agent.post(&format!("/v1/steps/{step}:signal"), &json!({ "signal": name }));
            }
        });
    }
}
