//! A program in a process group of its own.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::job::Job;
use super::output::{Tail, pass_on};
use crate::config::{Work, secret_variables};

/// How long output is read after the program has ended: programs that it has started can keep its pipes open.
const OUTPUT_MAX: Duration = Duration::from_secs(1);

/// Maximum size of an environment variable, in bytes: that of Linux, less the name.
const VARIABLE_BYTES_MAX: usize = (128 << 10) - 64;

/// The variable with the payload.
const PAYLOAD: &str = "SWITCHYARD_PAYLOAD";

/// A program that runs.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Its process ID, which is also the ID of its group.
    group: Option<Pid>,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    /// The end of its standard error.
    pub stderr: Arc<Tail>,
    tasks: Vec<JoinHandle<()>>,
    is_quiet: bool,
}

/// Checks that the program exists and may be run.
///
/// # Errors
/// If not.
pub fn find(options: &Work) -> Result<(), String> {
    let Some(program) = options.program.first() else {
        return Err("no program".to_owned());
    };
    let shown = Path::new(program).display();
    if Path::new(program).components().count() > 1 {
        return match is_executable(Path::new(program)) {
            true => Ok(()),
            false => Err(format!("{shown} does not exist or is not executable")),
        };
    }
    let paths = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&paths).any(|path| is_executable(&path.join(program)));
    match found {
        true => Ok(()),
        false => Err(format!(
            "{shown} is in no directory of PATH; for a program in the working directory, write ./{shown}"
        )),
    }
}

fn is_executable(path: &Path) -> bool {
    let found = fs::metadata(path);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Whether the payload can be passed in the environment.
pub fn fits_environment(payload: &[u8]) -> bool {
    payload.len() <= VARIABLE_BYTES_MAX && !payload.contains(&0)
}

impl Program {
    /// Starts the program for one job, with its payload, or the whole job, as the options say.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(options: &Work, variables: &[(&str, String)], job: &Job) -> io::Result<Program> {
        let mut command = command(options, variables);
        let of_job = variables_of(job);
        let fit = of_job
            .iter()
            .filter(|(_, value)| value.len() <= VARIABLE_BYTES_MAX);
        command.envs(fit.map(|(name, value)| (name, value)));
        let input = match (options.env, options.json) {
            (true, _) => {
                command.env(PAYLOAD, OsStr::from_bytes(&job.payload));
                Vec::new()
            }
            (false, true) => job.whole.clone().into_bytes(),
            (false, false) => job.payload.clone(),
        };
        let mut program = Program::spawn(command, options.quiet)?;
        if let Some(mut stdin) = program.stdin.take() {
            // The program need not read its input.
            program.tasks.push(tokio::spawn(async move {
                drop(stdin.write_all(&input).await);
            }));
        }
        if let Some(stdout) = program.stdout.take() {
            program.pass_on(stdout, &io::stdout(), Arc::default());
        }
        Ok(program)
    }

    /// Starts the program for many jobs, which are written to its standard input.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_for_lines(options: &Work, variables: &[(&str, String)]) -> io::Result<Program> {
        Program::spawn(command(options, variables), options.quiet)
    }

    fn spawn(mut command: Command, is_quiet: bool) -> io::Result<Program> {
        let mut child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let mut program = Program {
            group: group.and_then(Pid::from_raw),
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: Arc::default(),
            tasks: Vec::new(),
            child,
            is_quiet,
        };
        if let Some(stderr) = program.child.stderr.take() {
            let tail = Arc::clone(&program.stderr);
            program.pass_on(stderr, &io::stderr(), tail);
        }
        Ok(program)
    }

    fn pass_on(
        &mut self,
        from: impl AsyncRead + Unpin + Send + 'static,
        to: &impl AsFd,
        tail: Arc<Tail>,
    ) {
        // A file of its own, so that a slow reader of the worker's output blocks no thread of the worker.
        let to = to.as_fd().try_clone_to_owned().ok();
        let to = to.filter(|_| !self.is_quiet);
        let to = to.map(|to| tokio::fs::File::from_std(fs::File::from(to)));
        self.tasks.push(tokio::spawn(async move {
            pass_on(from, to, &tail).await;
        }));
    }

    /// Waits until the program has ended. Cancel-safe.
    ///
    /// # Errors
    /// If the system does not report how the program ended.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Waits until what the program has written is read, for up to 1 s. Then the rest is dropped.
    pub async fn read_rest(&mut self) {
        let all = async {
            for task in &mut self.tasks {
                drop(task.await);
            }
        };
        drop(timeout(OUTPUT_MAX, all).await);
        self.abandon_output();
    }

    /// Ends the program and all programs in its group: SIGTERM, and after `kill_after` SIGKILL.
    pub async fn stop(&mut self, kill_after: Duration) {
        self.signal(Signal::TERM);
        if timeout(kill_after, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            drop(self.child.wait().await);
        }
        // Programs that it has started.
        self.signal(Signal::KILL);
        self.read_rest().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It can have ended.
            kill_process_group(group, signal).ok();
        }
    }

    fn abandon_output(&mut self) {
        for task in self.tasks.drain(..) {
            task.abort();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.abandon_output();
    }
}

fn command(options: &Work, variables: &[(&str, String)]) -> Command {
    let (program, arguments) = match options.program.split_first() {
        Some((program, arguments)) => (program.as_os_str(), arguments),
        None => (OsStr::new(""), &[][..]),
    };
    let mut command = Command::new(program);
    let secrets = secret_variables().iter();
    for name in secrets.filter(|name| !options.pass_env.contains(name)) {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// The environment variables of a job.
fn variables_of(job: &Job) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("SWITCHYARD_QUEUE", job.queue.clone()),
        ("SWITCHYARD_JOB_ID", job.id.clone()),
    ];
    if let Some(attempt) = job.attempt {
        variables.push(("SWITCHYARD_ATTEMPT", attempt.to_string()));
    }
    variables.extend(job.variables.iter().cloned());
    // A variable cannot contain NUL.
    variables.retain(|(_, value)| !value.contains('\0'));
    variables
}
