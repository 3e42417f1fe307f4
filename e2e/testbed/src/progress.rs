//! Tells people what is being done, what it waits for and since when: live on a terminal, in lines elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A step that takes longer than this says so in plain output, again and again, ever less often.
const REMINDER: Duration = Duration::from_secs(10);

/// Cheap to clone; all clones write to the same place.
#[derive(Clone)]
pub struct Progress {
    started: Instant,
    output: Output,
}

#[derive(Clone)]
enum Output {
    Live(MultiProgress),
    Lines,
    Silent,
}

/// One thing being done; say how it ended with [`Step::done`].
pub struct Step {
    name: String,
    started: Instant,
    progress: Progress,
    bar: Option<ProgressBar>,
    last_line: Arc<Mutex<Instant>>,
}

impl Progress {
    /// Live on a terminal, lines otherwise; to standard error.
    pub fn to_stderr() -> Self {
        let output = if std::io::stderr().is_terminal() { Output::Live(MultiProgress::new()) } else { Output::Lines };
        Self { started: Instant::now(), output }
    }

    pub fn silent() -> Self {
        Self { started: Instant::now(), output: Output::Silent }
    }

    pub fn step(&self, name: &str) -> Step {
        let bar = match &self.output {
            Output::Live(all) => {
                let bar = all.add(ProgressBar::new_spinner());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {elapsed:>4} {wide_msg:.dim}") {
                    bar.set_style(style);
                }
                bar.set_prefix(format!("{name:<32}"));
                bar.enable_steady_tick(Duration::from_millis(120));
                Some(bar)
            }
            _ => None,
        };
        let now = Instant::now();
        Step { name: name.to_owned(), started: now, progress: self.clone(), bar, last_line: Arc::new(Mutex::new(now)) }
    }

    /// A line of its own, above whatever is live.
    pub fn say(&self, text: &str) {
        match &self.output {
            Output::Live(all) => {
                let _ = all.println(text);
            }
            Output::Lines => eprintln!("[{:>6.1}s] {text}", self.started.elapsed().as_secs_f32()),
            Output::Silent => {}
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Step {
    /// What the step waits for now; may be called as often as one likes.
    pub fn waiting(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            return;
        }
        let Ok(mut last) = self.last_line.lock() else {
            return;
        };
        if last.elapsed() >= REMINDER.max(self.started.elapsed() / 3) {
            *last = Instant::now();
            self.progress.say(&format!(
                "{}: waiting for {what} ({:.0} s)",
                self.name,
                self.started.elapsed().as_secs_f32()
            ));
        }
    }

    pub fn done(&self, outcome: &str) {
        let line = format!("{:<34} {outcome} ({:.1} s)", self.name, self.started.elapsed().as_secs_f32());
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.progress.say(&line);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
