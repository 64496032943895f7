//! Apple's `powermetrics`, which prints average power at a fixed interval and runs for root only.

#[cfg(target_os = "macos")]
pub(super) use reader::Powermetrics;

/// Reads the power in watts off a line that has it.
fn watts(line: &str) -> Option<f64> {
    let value = line
        .trim()
        .strip_prefix("Combined Power (CPU + GPU + ANE):")?;
    let milliwatts: f64 = value.trim().strip_suffix("mW")?.trim().parse().ok()?;
    Some(milliwatts / 1000.0)
}

#[cfg(target_os = "macos")]
mod reader {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::{Duration, Instant};

    use super::watts;

    const INTERVAL_MS: &str = "100";
    /// Longest wait for its first line.
    const FIRST: Duration = Duration::from_secs(3);

    /// A running `powermetrics`.
    #[derive(Debug)]
    pub(in super::super) struct Powermetrics {
        child: Child,
        readings: Receiver<(Instant, f64)>,
        /// The last reading, which holds until the next.
        last: (Instant, f64),
        joules: f64,
    }

    impl Powermetrics {
        /// Starts it; the error says why it does not run.
        pub(in super::super) fn open() -> Result<Self, String> {
            if !rustix::process::geteuid().is_root() {
                return Err(
                    "`powermetrics` runs for root only; run this with sudo to have it".to_owned(),
                );
            }
            let mut child = Command::new("/usr/bin/powermetrics")
                .args(["--samplers", "cpu_power,gpu_power", "-i", INTERVAL_MS])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| format!("`powermetrics` cannot be started: {error}"))?;
            let (sender, readings) = channel();
            if let Some(output) = child.stdout.take() {
                std::thread::spawn(move || {
                    let lines = BufReader::new(output).lines().map_while(Result::ok);
                    for power in lines.filter_map(|line| watts(&line)) {
                        if sender.send((Instant::now(), power)).is_err() {
                            return;
                        }
                    }
                });
            }
            let first = readings.recv_timeout(FIRST);
            let mut meter = Self {
                child,
                readings,
                last: (Instant::now(), 0.0),
                joules: 0.0,
            };
            meter.last = first
                .map_err(|_| "`powermetrics` tells no combined power on this machine".to_owned())?;
            Ok(meter)
        }

        pub(in super::super) fn joules(&mut self) -> Option<f64> {
            let (mut at, mut power) = self.last;
            for (time, next) in self.readings.try_iter() {
                // A reading is the average over the interval that ends with it.
                self.joules += next * (time - at).as_secs_f64();
                (at, power) = (time, next);
            }
            self.last = (at, power);
            Some(self.joules + power * at.elapsed().as_secs_f64())
        }
    }

    impl Drop for Powermetrics {
        fn drop(&mut self) {
            // Both fail only where it is gone already.
            let _gone = self.child.kill();
            let _gone = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::watts;

    #[test]
    fn only_the_combined_power_counts() {
        assert_eq!(
            watts("Combined Power (CPU + GPU + ANE): 1532 mW"),
            Some(1.532)
        );
        assert_eq!(watts("CPU Power: 1200 mW"), None);
        assert_eq!(watts("Combined Power (CPU + GPU + ANE): off"), None);
    }
}
