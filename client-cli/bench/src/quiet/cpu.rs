//! Who uses the processors, as the system tells it.

/// Processor time since the system started, in ticks: of the whole machine, and of us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// Of all processors, idle or not.
    pub(super) all: f64,
    /// Computing.
    pub(super) busy: f64,
    /// Wanted, and taken away by a hypervisor.
    pub(super) stolen: f64,
    /// This process, its children that ended, and those that were named.
    pub(super) ours: f64,
}

impl Times {
    /// Reads the times; `None` where the system does not tell them.
    #[cfg(target_os = "linux")]
    pub(super) fn read(ours: &[u32]) -> Option<Self> {
        let machine = machine(&std::fs::read_to_string("/proc/stat").ok()?)?;
        let own = process(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
        let others = ours.iter().filter_map(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            process(&stat)
        });
        Some(Self {
            ours: own + others.sum::<f64>(),
            ..machine
        })
    }

    /// Reads the times; `None` where the system does not tell them.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn read(_ours: &[u32]) -> Option<Self> {
        None
    }
}

/// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
#[cfg(any(target_os = "linux", test))]
fn machine(stat: &str) -> Option<Times> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let &[user, nice, system, idle, iowait, irq, softirq, stolen] = ticks.get(..8)? else {
        return None;
    };
    let busy = user + nice + system + irq + softirq;
    Some(Times {
        all: busy + idle + iowait + stolen,
        busy,
        stolen,
        ours: 0.0,
    })
}

/// Reads `/proc/PID/stat`: user and system time, of the process and of its children that were waited for.
#[cfg(any(target_os = "linux", test))]
fn process(stat: &str) -> Option<f64> {
    // The name comes second, in parentheses, and may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(4);
    ticks.map(|field| field.parse::<f64>().ok()).sum()
}

/// Returns the load average of the last minute.
#[cfg(target_os = "linux")]
pub(super) fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Returns the load average of the last minute.
#[cfg(not(target_os = "linux"))]
pub(super) fn load() -> Option<f64> {
    // There is no safe call for it, and once per benchmark a process is cheap enough.
    let output = std::process::Command::new("/usr/sbin/sysctl")
        .args(["-n", "vm.loadavg"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.trim_matches(['{', '}', ' ', '\n'])
        .split(' ')
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_linux_are_read_as_they_are() {
        let machine = machine("cpu  100 20 30 800 5 1 2 42 7 0\ncpu0 1 2 3\n").unwrap();
        let expected = Times {
            all: 1000.0,
            busy: 153.0,
            stolen: 42.0,
            ours: 0.0,
        };
        assert_eq!(machine, expected);
        let stat = "23 (a) b) S 1 1 1 0 -1 4194304 98 0 0 0 11 22 33 44 20 0 1 0 29 31 36";
        assert_eq!(process(stat), Some(110.0));
        assert_eq!(process("23 (a"), None);
        assert_eq!(super::machine("cpu  1 2"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn our_own_work_counts_as_ours() {
        let begin = Times::read(&[]).unwrap();
        let mut sum = 0_u64;
        // Until the clock of the system, which ticks every 10 ms, has seen it.
        while Times::read(&[]).unwrap().ours < begin.ours + 5.0 {
            sum = (0..100_000).fold(sum, |sum, value| std::hint::black_box(sum ^ value));
        }
        let end = Times::read(&[]).unwrap();
        assert!(end.busy > begin.busy && end.all > begin.all);
    }
}
