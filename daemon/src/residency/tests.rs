//! The state machine of a pair, against a model of it.

use std::path::Path;

use proptest::prelude::*;

use super::activity::Activity;
use super::*;
use crate::config::PairConfig;

fn pair() -> Arc<Pair> {
    let config = Config::parse("", Path::new("/config.toml")).expect("valid");
    let settings = Settings {
        recipe: Arc::new(Recipe::new(&config, &PairConfig::built_in())),
        residency: PairConfig::built_in().residency,
    };
    Arc::new(Pair::new("p".to_owned(), settings, 4))
}

/// A load of the tiny model, which nothing runs.
fn resident(lane: u64) -> Arc<Resident> {
    use std::sync::OnceLock;
    static PARTS: OnceLock<(
        Arc<tandem_model::tokenizer::Tokenizer>,
        tandem_engine::pair::PairReport,
    )> = OnceLock::new();
    let (tokenizer, report) = PARTS.get_or_init(|| {
        let loaded = crate::worker::tiny::load();
        (Arc::clone(loaded.tokenizer()), loaded.report().clone())
    });
    let parts = Parts {
        tokenizer: Arc::clone(tokenizer),
        template: Err(Arc::new(tandem_model::template::TemplateError::Missing)),
        report: report.clone(),
        size: Size::default(),
        draft: DraftPlace::None,
        took: std::time::Duration::ZERO,
    };
    let recipe = pair().settings().recipe;
    Arc::new(Resident::new(LaneId(lane), "p".to_owned(), recipe, parts))
}

#[derive(Clone, Debug)]
enum Event {
    Want,
    Retry,
    Loaded,
    Fail,
    Lose,
    LoseOther,
    Drain,
    DrainIdle,
    Unloading,
    Cold,
    Remove,
    Lease,
    Release,
}

fn event() -> impl Strategy<Value = Event> {
    prop::sample::select(vec![
        Event::Want,
        Event::Retry,
        Event::Loaded,
        Event::Loaded,
        Event::Fail,
        Event::Lose,
        Event::LoseOther,
        Event::Drain,
        Event::DrainIdle,
        Event::Unloading,
        Event::Cold,
        Event::Remove,
        Event::Lease,
        Event::Lease,
        Event::Release,
    ])
}

/// What the pair should be, as simple as can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    Cold { failed: bool },
    Loading,
    Warm(u64),
    Draining(u64),
    Unloading,
    Removed,
}

fn is(state: &PairState) -> Model {
    match state {
        PairState::Cold(failure) => Model::Cold {
            failed: failure.is_some(),
        },
        PairState::Loading => Model::Loading,
        PairState::Warm(resident) => Model::Warm(resident.lane.0),
        PairState::Draining(resident) => Model::Draining(resident.lane.0),
        PairState::Unloading => Model::Unloading,
        PairState::Removed => Model::Removed,
    }
}

proptest! {
    #[test]
    fn pairs_go_their_way_and_leases_hold(events in prop::collection::vec(event(), 1..60)) {
        let (pair, activity) = (pair(), Activity::default());
        let mut model = Model::Cold { failed: false };
        let mut leases: Vec<Lease> = Vec::new();
        let mut lanes = 0;
        let users = |leases: &[Lease], lane: u64| {
            leases.iter().filter(|lease| lease.resident.lane.0 == lane).count()
        };
        for event in events {
            match event {
                Event::Want => {
                    let began = pair.begin_loading(|failure| failure.is_none());
                    prop_assert_eq!(began, model == Model::Cold { failed: false });
                    if began {
                        model = Model::Loading;
                    }
                }
                Event::Retry => {
                    if pair.begin_loading(|_| true) {
                        prop_assert!(matches!(model, Model::Cold { .. }), "from cold only");
                        model = Model::Loading;
                    }
                }
                Event::Loaded => {
                    lanes += 1;
                    let old = pair.set_warm(resident(lanes));
                    match model {
                        Model::Warm(lane) | Model::Draining(lane) => {
                            prop_assert_eq!(old.map(|old| old.lane.0), Some(lane));
                        }
                        _ => prop_assert!(old.is_none()),
                    }
                    if !matches!(model, Model::Removed | Model::Unloading) {
                        model = Model::Warm(lanes);
                    }
                }
                Event::Fail => {
                    pair.set_failed("x", true);
                    if model != Model::Removed {
                        model = Model::Cold { failed: true };
                    }
                }
                Event::Lose => {
                    pair.lose(LaneId(lanes), "x", true);
                    if matches!(model, Model::Warm(lane) | Model::Draining(lane) if lane == lanes) {
                        model = Model::Cold { failed: true };
                    }
                }
                // A load that was replaced long ago.
                Event::LoseOther => pair.lose(LaneId(lanes + 1), "x", true),
                Event::Drain | Event::DrainIdle => {
                    let idle = matches!(event, Event::DrainIdle);
                    let drained = pair.drain(|resident| !idle || resident.users() == 0);
                    if let Model::Warm(lane) = model
                        && (!idle || users(&leases, lane) == 0)
                    {
                        prop_assert_eq!(drained.map(|drained| drained.lane.0), Some(lane));
                        model = Model::Draining(lane);
                    } else {
                        prop_assert!(drained.is_none());
                    }
                }
                Event::Unloading => {
                    pair.enter(PairState::Unloading);
                    if matches!(model, Model::Draining(_)) {
                        model = Model::Unloading;
                    }
                }
                Event::Cold => {
                    pair.enter(PairState::Cold(None));
                    if model != Model::Removed {
                        model = Model::Cold { failed: false };
                    }
                }
                Event::Remove => {
                    pair.enter(PairState::Removed);
                    model = Model::Removed;
                }
                Event::Lease => match pair.lease(None, &activity) {
                    Some(lease) => {
                        prop_assert_eq!(Model::Warm(lease.resident.lane.0), model);
                        leases.push(lease);
                    }
                    None => prop_assert!(!matches!(model, Model::Warm(_)), "warm gives leases"),
                },
                Event::Release => {
                    leases.pop();
                }
            }
            prop_assert_eq!(is(&pair.state()), model);
            prop_assert_eq!(*activity.watch().borrow(), leases.len());
            for lease in &leases {
                let lane = lease.resident.lane.0;
                prop_assert_eq!(lease.resident.users(), users(&leases, lane));
            }
        }
    }
}

#[test]
fn idle_time_counts_from_the_last_request_and_as_it_said() {
    use std::time::Duration;
    let (pair, activity) = (pair(), Activity::default());
    let hour = KeepAlive::For(Duration::from_secs(3600));
    pair.begin_loading(|_| true);
    pair.set_warm(resident(1));
    assert_eq!(pair.unload_due(), None, "for ever, as is the default");
    let lease = pair.lease(Some(hour), &activity);
    let other = pair.lease(Some(KeepAlive::For(Duration::ZERO)), &activity);
    drop(other);
    assert_eq!(pair.unload_due(), None, "one still runs");
    let before = Instant::now();
    drop(lease);
    let due = pair.unload_due().expect("as the last one said");
    assert!(due >= before + Duration::from_secs(3600));
    drop(pair.lease(Some(KeepAlive::For(Duration::MAX)), &activity));
    assert_eq!(pair.unload_due(), None, "longer than the clock counts");
    drop(pair.lease(Some(KeepAlive::For(Duration::ZERO)), &activity));
    assert!(pair.unload_due().is_some_and(|due| due <= Instant::now()));
    pair.set_warm(resident(2));
    assert_eq!(
        pair.keep_alive(),
        KeepAlive::Forever,
        "a new load begins anew"
    );
}
