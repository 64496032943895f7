//! Running average power limit: energy counters of processor packages, through the kernel's powercap files.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The counters of all packages.
#[derive(Debug)]
pub(super) struct Rapl {
    packages: Vec<Package>,
}

#[derive(Debug)]
struct Package {
    counter: PathBuf,
    /// Microjoules at which the counter starts over.
    range: u64,
    last: u64,
    joules: f64,
}

impl Rapl {
    /// Opens the counters under `root`; the error says why there are none.
    pub(super) fn open(root: &Path) -> Result<Self, String> {
        let zones = fs::read_dir(root).map_err(|_| {
            format!(
                "this machine has no energy counters (`{}` is not there)",
                root.display()
            )
        })?;
        // `intel-rapl:0` is a package, also of AMD; `intel-rapl:0:0` is a part of it.
        let mut names: Vec<PathBuf> = zones
            .filter_map(|zone| zone.ok().map(|zone| zone.path()))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.strip_prefix("intel-rapl:")
                    .is_some_and(|rest| !rest.contains(':'))
            })
            .collect();
        names.sort();
        let packages: Vec<Package> = names
            .iter()
            .map(|zone| Package::open(zone))
            .collect::<Result<_, _>>()?;
        if packages.is_empty() {
            return Err(format!("`{}` has no processor package", root.display()));
        }
        Ok(Self { packages })
    }

    /// Joules of all packages since they were opened. A counter starts over after some minutes at full power, so this must
    /// be called more often.
    pub(super) fn joules(&mut self) -> Option<f64> {
        let mut joules = 0.0;
        for package in &mut self.packages {
            joules += package.advance()?;
        }
        Some(joules)
    }
}

impl Package {
    fn open(zone: &Path) -> Result<Self, String> {
        let counter = zone.join("energy_uj");
        let last = read(&counter).map_err(|kind| match kind {
            ErrorKind::PermissionDenied => {
                format!("only root may read `{}`", counter.display())
            }
            _ => format!("`{}` cannot be read", counter.display()),
        })?;
        Ok(Self {
            range: read(&zone.join("max_energy_range_uj")).unwrap_or(u64::MAX),
            counter,
            last,
            joules: 0.0,
        })
    }

    fn advance(&mut self) -> Option<f64> {
        let now = read(&self.counter).ok()?;
        let used = if now >= self.last {
            now - self.last
        } else {
            now + self.range.saturating_sub(self.last)
        };
        self.last = now;
        self.joules += used as f64 * 1e-6;
        Some(self.joules)
    }
}

fn read(path: &Path) -> Result<u64, ErrorKind> {
    let text = fs::read_to_string(path).map_err(|error| error.kind())?;
    text.trim().parse().map_err(|_| ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(root: &Path, name: &str, microjoules: u64) {
        let zone = root.join(name);
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("energy_uj"), format!("{microjoules}\n")).unwrap();
        fs::write(zone.join("max_energy_range_uj"), "1000000000\n").unwrap();
    }

    #[test]
    fn packages_add_up_and_their_parts_do_not_count_twice() {
        let root = tempfile::tempdir().unwrap();
        zone(root.path(), "intel-rapl:0", 500);
        zone(root.path(), "intel-rapl:0:0", 7);
        zone(root.path(), "intel-rapl:1", 999_000_000);
        zone(root.path(), "dtpm", 3);
        let mut rapl = Rapl::open(root.path()).unwrap();
        assert_eq!(rapl.joules(), Some(0.0));
        zone(root.path(), "intel-rapl:0", 2_000_500);
        zone(root.path(), "intel-rapl:0:0", 900_000_000);
        zone(root.path(), "intel-rapl:1", 500_000);
        let joules = rapl.joules().unwrap();
        assert!(
            (joules - 3.5).abs() < 1e-9,
            "2 J, and 1.5 J across the counter's end: {joules}"
        );
        assert_eq!(rapl.joules(), Some(joules));
    }

    #[test]
    fn it_says_why_there_is_nothing_to_read() {
        let root = tempfile::tempdir().unwrap();
        let missing = Rapl::open(&root.path().join("none")).unwrap_err();
        assert!(missing.contains("no energy counters"), "{missing}");
        let empty = Rapl::open(root.path()).unwrap_err();
        assert!(empty.contains("no processor package"), "{empty}");
        fs::create_dir(root.path().join("intel-rapl:0")).unwrap();
        let broken = Rapl::open(root.path()).unwrap_err();
        assert!(broken.contains("cannot be read"), "{broken}");
    }
}
