//! Readings of memory that budget and governor go by: that the system gives them, and that they follow what happens.

use std::hint::black_box;

use super::{Finding, error, of};
use crate::config::format_bytes;
use crate::platform::{Platform, Pressure};

const SECTION: &str = "memory";
/// What is allocated and written to see the footprint follow.
const BLOCK: u64 = 64 << 20;

pub(super) fn check(platform: &dyn Platform) -> Vec<Finding> {
    vec![
        footprint(platform),
        pressure(platform),
        watch(platform),
        working_set(platform),
    ]
}

fn footprint(platform: &dyn Platform) -> Finding {
    let finding = of(SECTION, "footprint");
    let readings = platform.footprint().and_then(|before| {
        let block = black_box(vec![1u8; BLOCK as usize]);
        let with_block = platform.footprint()?;
        drop(block);
        Ok((before, with_block, platform.footprint()?))
    });
    let (before, with_block, after) = match readings {
        Ok(readings) => readings,
        Err(problem) => {
            return finding
                .failed(format!("the system does not say: {}", error(&problem)))
                .advise("the daemon cannot keep to its budget; on Linux, /proc has to be mounted");
        }
    };
    let grown = with_block.saturating_sub(before);
    let seen = format!(
        "{}, {} with 64 MiB written, {} after",
        format_bytes(before),
        format_bytes(with_block),
        format_bytes(after)
    );
    // Other threads and the allocator give and take a little.
    let follows = (BLOCK / 4 * 3..=BLOCK / 4 * 5).contains(&grown);
    let finding = if follows {
        finding.ok(seen)
    } else {
        finding
            .failed(format!("it does not follow what is written: {seen}"))
            .advise("the daemon would misjudge its memory: please report it with this page")
    };
    finding
        .value("before_bytes", before)
        .value("with_64_mib_bytes", with_block)
        .value("after_bytes", after)
}

fn pressure(platform: &dyn Platform) -> Finding {
    let finding = of(SECTION, "pressure");
    let (finding, level) = match platform.pressure() {
        Ok(Pressure::Normal) => (finding.ok("normal"), "normal"),
        Ok(Pressure::Warn) => (
            finding
                .warning("warn: the system is short of memory")
                .advise("the daemon keeps less now; close what you do not need"),
            "warn",
        ),
        Ok(Pressure::Critical) => (
            finding
                .warning("critical: the system is very short of memory")
                .advise("the daemon gives up its draft now, then more; close what you do not need"),
            "critical",
        ),
        Err(problem) => (
            finding
                .failed(format!("the system does not say: {}", error(&problem)))
                .advise("the daemon could not give memory back in time: please report it with this page"),
            "unknown",
        ),
    };
    finding.value("level", level)
}

fn watch(platform: &dyn Platform) -> Finding {
    let finding = of(SECTION, "pressure events");
    match platform.watch_pressure(Box::new(|_| {})) {
        Ok(watch) => {
            drop(watch);
            finding.ok("changes can be watched")
        }
        Err(problem) => finding
            .failed(format!("changes cannot be watched: {}", error(&problem)))
            .advise("the daemon would hear of a shortage late or never: please report it with this page"),
    }
}

fn working_set(platform: &dyn Platform) -> Finding {
    let finding = of(SECTION, "working set");
    match platform.recommended_working_set() {
        Some(bytes) => finding
            .ok(format!(
                "the GPU recommends to use at most {}",
                format_bytes(bytes)
            ))
            .value("recommended_bytes", bytes),
        None => finding.skipped("there is no GPU here that recommends one"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;
    use crate::platform::{FakePlatform, native};

    #[test]
    fn the_readings_of_this_machine_are_there() {
        // Not the footprint: other tests of this process allocate at the same time. The end-to-end test has it alone.
        let platform = &*native();
        let findings = [pressure(platform), watch(platform), working_set(platform)];
        assert!(
            findings.iter().all(|finding| finding.mark < Mark::Failed),
            "{findings:?}"
        );
    }

    #[test]
    fn a_footprint_that_stands_still_fails() {
        let finding = footprint(&FakePlatform::new(1 << 20, 1 << 30));
        assert_eq!(finding.mark, Mark::Failed);
        assert!(finding.message.contains("does not follow"));
    }

    #[test]
    fn shortage_is_a_warning() {
        let platform = FakePlatform::new(1 << 20, 1 << 30);
        for level in [Pressure::Warn, Pressure::Critical] {
            platform.set_pressure(level);
            assert_eq!(pressure(&platform).mark, Mark::Warning);
        }
        assert_eq!(watch(&platform).mark, Mark::Ok);
        assert_eq!(platform.watches(), 0, "nobody listens any more");
        platform.set_recommended_working_set(Some(5 << 30));
        assert!(working_set(&platform).message.contains('5'));
    }
}
