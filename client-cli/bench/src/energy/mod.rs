//! Joules, where the machine counts them and lets us read.

#[cfg(any(target_os = "macos", test))]
mod powermetrics;
#[cfg(any(target_os = "linux", test))]
mod rapl;

use serde::{Deserialize, Serialize};

/// Where joules come from, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The processor packages, as the Linux kernel reads their counters (RAPL). Memory is not in it on most machines.
    Rapl,
    /// Processor, GPU and neural engine, as `powermetrics` estimates them.
    Powermetrics,
    /// There is none; why.
    Absent(String),
}

/// Counts joules since it was opened.
#[derive(Debug)]
pub(crate) struct Meter {
    reader: Reader,
    absent: String,
}

#[derive(Debug)]
enum Reader {
    #[cfg(target_os = "linux")]
    Rapl(rapl::Rapl),
    #[cfg(target_os = "macos")]
    Powermetrics(powermetrics::Powermetrics),
    None,
}

impl Meter {
    /// Opens what this machine has.
    pub(crate) fn open() -> Self {
        #[cfg(target_os = "linux")]
        let opened =
            rapl::Rapl::open(std::path::Path::new("/sys/class/powercap")).map(Reader::Rapl);
        #[cfg(target_os = "macos")]
        let opened = powermetrics::Powermetrics::open().map(Reader::Powermetrics);
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        let opened = Err("this system has no counter that is known here".to_owned());
        match opened {
            Ok(reader) => Self {
                reader,
                absent: String::new(),
            },
            Err(absent) => Self {
                reader: Reader::None,
                absent,
            },
        }
    }

    /// Joules since it was opened.
    pub(crate) fn joules(&mut self) -> Option<f64> {
        match &mut self.reader {
            #[cfg(target_os = "linux")]
            Reader::Rapl(rapl) => rapl.joules(),
            #[cfg(target_os = "macos")]
            Reader::Powermetrics(powermetrics) => powermetrics.joules(),
            Reader::None => None,
        }
    }

    pub(crate) fn source(&self) -> Source {
        match &self.reader {
            #[cfg(target_os = "linux")]
            Reader::Rapl(_) => Source::Rapl,
            #[cfg(target_os = "macos")]
            Reader::Powermetrics(_) => Source::Powermetrics,
            Reader::None => Source::Absent(self.absent.clone()),
        }
    }
}
