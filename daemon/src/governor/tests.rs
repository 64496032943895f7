//! The governor by a clock of the test's own.

use proptest::prelude::*;

use super::*;

const HYSTERESIS: Hysteresis = Hysteresis {
    look: Duration::from_secs(1),
    settle: Duration::from_secs(2),
    quiet: Duration::from_secs(10),
    longest: Duration::from_secs(640),
};

/// A governor and what it sees.
struct World {
    governor: Governor,
    seen: Situation,
    /// Every stage it entered, and when in seconds.
    entered: Vec<(u64, Stage)>,
}

impl World {
    fn new() -> Self {
        Self {
            governor: Governor::new(&HYSTERESIS),
            seen: Situation {
                at: Duration::ZERO,
                pressure: Pressure::Normal,
                footprint: 100,
                budget: 1000,
                restore: 50,
            },
            entered: Vec::new(),
        }
    }

    fn look(&mut self) -> Option<Stage> {
        let (governor, entered) = self.governor.look(&self.seen, &HYSTERESIS);
        self.governor = governor;
        self.entered
            .extend(entered.map(|stage| (self.seen.at.as_secs(), stage)));
        entered
    }

    /// Looks now and then every second, for so many.
    fn pass(&mut self, pressure: Pressure, seconds: u64) {
        self.seen.pressure = pressure;
        for _ in 0..seconds {
            self.look();
            self.seen.at += Duration::from_secs(1);
        }
    }

    fn stages(&self) -> Vec<Stage> {
        self.entered.iter().map(|(_, stage)| *stage).collect()
    }
}

#[test]
fn without_need_nothing_happens() {
    let mut world = World::new();
    world.pass(Pressure::Normal, 10_000);
    assert!(world.entered.is_empty());
}

#[test]
fn a_warning_holds_and_no_more() {
    let mut world = World::new();
    world.pass(Pressure::Warn, 3600);
    assert_eq!(world.entered, [(0, Stage::Held)]);
    world.pass(Pressure::Normal, 9);
    assert_eq!(world.governor.stage(), Stage::Held);
    world.pass(Pressure::Normal, 3);
    assert_eq!(world.stages(), [Stage::Held, Stage::Free]);
}

#[test]
fn critical_sheds_at_once_and_then_step_by_step() {
    let mut world = World::new();
    world.pass(Pressure::Critical, 60);
    assert_eq!(
        world.entered,
        [(0, Stage::Shed), (2, Stage::Refusing), (4, Stage::Unloaded)]
    );
    world.pass(Pressure::Normal, 60);
    assert_eq!(world.stages()[3..], [Stage::Shed, Stage::Free]);
}

#[test]
fn what_is_calm_by_half_is_not_calm() {
    let mut world = World::new();
    world.pass(Pressure::Critical, 1);
    world.pass(Pressure::Warn, 600);
    assert_eq!(
        world.stages(),
        [Stage::Shed],
        "a warning brings nothing back"
    );
    world.pass(Pressure::Normal, 8);
    world.pass(Pressure::Warn, 1);
    world.pass(Pressure::Normal, 8);
    assert_eq!(world.stages(), [Stage::Shed], "the quiet was broken");
    world.pass(Pressure::Normal, 4);
    assert_eq!(world.stages(), [Stage::Shed, Stage::Free]);
}

#[test]
fn the_own_footprint_sheds_but_neither_refuses_nor_unloads() {
    let mut world = World::new();
    world.seen.footprint = 950;
    world.pass(Pressure::Normal, 60);
    assert_eq!(world.stages(), [Stage::Held]);
    world.seen.footprint = 1001;
    world.pass(Pressure::Normal, 3600);
    assert_eq!(world.stages(), [Stage::Held, Stage::Shed]);
}

#[test]
fn what_does_not_fit_stays_away() {
    let mut world = World::new();
    world.pass(Pressure::Critical, 1);
    world.seen.footprint = 600;
    world.seen.restore = 301;
    world.pass(Pressure::Normal, 3600);
    assert_eq!(
        world.stages(),
        [Stage::Shed],
        "901 of 1000 would be nearly full"
    );
    world.seen.restore = 300;
    world.pass(Pressure::Normal, 2);
    assert_eq!(world.stages(), [Stage::Shed, Stage::Free]);
}

/// A draft that itself makes the system short of memory: the worst there is.
#[test]
fn there_is_no_see_saw() {
    let mut world = World::new();
    let day = 24 * 3600;
    while world.seen.at.as_secs() < day {
        let pressure = match world.governor.stage() {
            Stage::Free => Pressure::Critical,
            _ => Pressure::Normal,
        };
        world.pass(pressure, 1);
    }
    let sheds = world
        .entered
        .iter()
        .filter(|(_, stage)| *stage == Stage::Shed);
    let times: Vec<u64> = sheds.map(|(at, _)| *at).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps[0] < 15, "{gaps:?}");
    assert!(gaps.is_sorted(), "ever more patient: {gaps:?}");
    assert!(
        gaps.iter().all(|gap| *gap <= 645),
        "and never for ever: {gaps:?}"
    );
    assert!(times.len() < 150, "{} times in a day", times.len());
}

#[test]
fn patience_comes_back_when_it_was_worth_it() {
    let mut world = World::new();
    for _ in 0..3 {
        world.pass(Pressure::Critical, 1);
        world.pass(Pressure::Normal, 100);
    }
    assert!(world.governor.patience > HYSTERESIS.quiet);
    world.pass(Pressure::Normal, 3600);
    world.pass(Pressure::Critical, 1);
    assert_eq!(world.governor.patience, HYSTERESIS.quiet);
}

#[test]
fn a_clock_that_jumps_brings_nothing_back_and_breaks_nothing() {
    let mut world = World::new();
    world.pass(Pressure::Critical, 1);
    world.seen.at += Duration::from_secs(100_000);
    world.pass(Pressure::Normal, 1);
    assert_eq!(world.stages(), [Stage::Shed], "asleep is not calm");
    world.seen.at = Duration::from_secs(5);
    world.pass(Pressure::Normal, 1);
    assert_eq!(world.stages(), [Stage::Shed]);
    world.pass(Pressure::Normal, 12);
    assert_eq!(world.stages(), [Stage::Shed, Stage::Free]);
}

#[test]
fn times_that_are_configured_short_or_zero_still_work() {
    for quiet in [Duration::ZERO, Duration::from_millis(40)] {
        let hysteresis = Hysteresis::new(quiet);
        assert!(hysteresis.look > Duration::ZERO);
        assert!(hysteresis.longest >= hysteresis.quiet);
    }
    let default = Hysteresis::new(Duration::from_secs(10));
    assert_eq!(default.look, HYSTERESIS.look);
    assert_eq!(default.settle, HYSTERESIS.settle);
}

fn pressure() -> impl Strategy<Value = Pressure> {
    prop_oneof![
        4 => Just(Pressure::Normal),
        1 => Just(Pressure::Warn),
        1 => Just(Pressure::Critical),
    ]
}

proptest! {
    /// Whatever the system says, when, and however the clock runs.
    #[test]
    fn it_keeps_its_word(
        looks in prop::collection::vec((pressure(), 0u64..2000, 0u64..1300, 0u64..400), 1..300),
    ) {
        let mut world = World::new();
        let mut calm_ms = 0;
        for (pressure, ms, footprint, restore) in looks {
            let seen = Situation {
                at: world.seen.at + Duration::from_millis(ms),
                pressure,
                footprint,
                restore,
                ..world.seen
            };
            world.seen = seen;
            let before = world.governor;
            let calm = pressure == Pressure::Normal && footprint <= 900;
            calm_ms = if calm { calm_ms + ms } else { 0 };
            let entered = world.look();
            let stage = world.governor.stage();
            prop_assert_eq!(entered.unwrap_or(before.stage), stage);
            if pressure == Pressure::Critical || footprint > 1000 {
                prop_assert!(stage >= Stage::Shed, "it is dealt with at once");
            }
            if pressure == Pressure::Warn {
                prop_assert!(stage >= Stage::Held);
            }
            if pressure != Pressure::Critical {
                let refuses = stage > Stage::Shed && before.stage() <= Stage::Shed;
                prop_assert!(!refuses, "only the system's need refuses work");
            }
            if stage < before.stage() {
                prop_assert!(calm_ms >= before.patience.as_millis() as u64, "it was calm for long");
                if stage == Stage::Free && before.stage() == Stage::Shed {
                    prop_assert!(footprint + restore <= 900, "what comes back fits");
                }
            }
            if entered.is_some() {
                calm_ms = 0;
            }
            prop_assert!(world.governor.patience >= HYSTERESIS.quiet);
            prop_assert!(world.governor.patience <= HYSTERESIS.longest);
        }
        // Whatever was, it ends.
        world.seen.footprint = 0;
        world.seen.restore = 0;
        world.pass(Pressure::Normal, 3 * HYSTERESIS.longest.as_secs());
        prop_assert_eq!(world.governor.stage(), Stage::Free);
    }
}
