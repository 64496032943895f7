use tonic::Code;
use tonic_types::StatusExt;

use super::*;

/// The field that a change makes impossible, and the change.
type Case<T> = (&'static str, fn(&mut T));

fn request() -> v1::GenerateRequest {
    v1::GenerateRequest {
        input: Some(v1::generate_request::Input::Text("once".into())),
        sampling_params: Some(v1::SamplingParams::default()),
        ..Default::default()
    }
}

/// The fields that the refusal of a request names.
fn fields(request: v1::GenerateRequest) -> Vec<String> {
    let status = Plan::new(request).expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument);
    let details = status.get_error_details();
    assert_eq!(
        details.error_info().expect("always there").domain,
        "tandem.v1"
    );
    let violations = &details
        .bad_request()
        .expect("always there")
        .field_violations;
    assert!(
        violations
            .iter()
            .all(|violation| !violation.description.is_empty())
    );
    violations
        .iter()
        .map(|violation| violation.field.clone())
        .collect()
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let plan = Plan::new(v1::GenerateRequest {
        sampling_params: None,
        ..request()
    })
    .unwrap();
    assert_eq!(plan.sampling, SamplingParams::greedy());
    assert_eq!(plan.speculation, Speculation::On);
    assert_eq!(
        (plan.draft_length, plan.draft_width, plan.time_limit),
        (None, None, None)
    );
    assert_eq!(plan.stop.max_tokens, None);
    assert!(
        plan.drafters.is_none() && plan.history == History::Process,
        "all drafters, and the process's own history"
    );
    assert!(
        !plan.stop.ignore_eos && plan.stop.strings.is_empty() && plan.stop.token_ids.is_empty()
    );
}

#[test]
fn every_field_arrives() {
    let mut full = request();
    full.pair = "code".into();
    full.request_id = "r1".into();
    full.speculation = v1::Speculation::Required.into();
    full.draft_length = Some(63);
    full.draft_width = Some(1);
    full.draft_methods = vec![
        v1::DraftMethod::Lookup.into(),
        v1::DraftMethod::Model.into(),
    ];
    full.history = Some("editor".into());
    full.time_limit = Some(prost_types::Duration {
        seconds: 1,
        nanos: 500_000_000,
    });
    full.sampling_params = Some(v1::SamplingParams {
        temperature: Some(0.5),
        top_k: Some(40),
        top_p: Some(0.9),
        min_p: Some(0.1),
        repetition_penalty: Some(1.1),
        presence_penalty: Some(-1.0),
        frequency_penalty: Some(2.0),
        logit_bias: [(7, -100.0)].into(),
        seed: Some(9),
        max_tokens: Some(10),
        stop: vec!["x".into()],
        stop_token_ids: vec![3],
        ignore_eos: true,
        logprobs: Some(20),
    });
    let plan = Plan::new(full).unwrap();
    assert_eq!(
        (plan.pair.as_str(), plan.request_id.as_str()),
        ("code", "r1")
    );
    assert_eq!(plan.speculation, Speculation::Required);
    let allowed = plan.drafters.unwrap();
    assert_eq!(
        DraftKind::ALL.map(|kind| (kind, allowed[kind.index()])),
        [
            (DraftKind::Model, true),
            (DraftKind::SelfDraft, false),
            (DraftKind::Lookup, true)
        ]
    );
    assert_eq!(plan.history, History::Named("editor".into()));
    assert_eq!(
        (plan.draft_length, plan.draft_width, plan.time_limit),
        (Some(63), Some(1), Some(Duration::from_millis(1500)))
    );
    let expected = SamplingParams {
        temperature: 0.5,
        top_k: 40,
        top_p: 0.9,
        min_p: 0.1,
        repetition_penalty: 1.1,
        presence_penalty: -1.0,
        frequency_penalty: 2.0,
        logit_bias: [(7, -100.0)].into(),
        seed: Some(9),
    };
    assert_eq!(plan.sampling, expected);
    assert_eq!((plan.stop.max_tokens, plan.logprobs), (Some(10), Some(20)));
    assert_eq!(
        (plan.stop.strings, plan.stop.token_ids, plan.stop.ignore_eos),
        (vec!["x".to_owned()], vec![3], true)
    );
}

#[test]
fn inputs_need_content() {
    use v1::generate_request::Input as Wire;
    let with = |input| v1::GenerateRequest { input, ..request() };
    assert_eq!(fields(with(None)), ["input"]);
    assert_eq!(fields(with(Some(Wire::Text(String::new())))), ["text"]);
    assert_eq!(
        fields(with(Some(Wire::TokenIds(v1::TokenIds::default())))),
        ["token_ids.ids"]
    );
    assert_eq!(
        fields(with(Some(Wire::Chat(v1::ChatInput::default())))),
        ["chat.messages"]
    );
    let nameless = v1::ChatInput {
        messages: vec![v1::ChatMessage::default()],
    };
    assert_eq!(
        fields(with(Some(Wire::Chat(nameless)))),
        ["chat.messages[0].role"]
    );
}

#[test]
fn numbers_have_ranges() {
    let cases: [Case<v1::SamplingParams>; 12] = [
        ("temperature", |params| params.temperature = Some(-0.1)),
        ("temperature", |params| params.temperature = Some(f32::NAN)),
        ("top_p", |params| params.top_p = Some(0.0)),
        ("min_p", |params| params.min_p = Some(1.5)),
        ("repetition_penalty", |params| {
            params.repetition_penalty = Some(0.0)
        }),
        ("presence_penalty", |params| {
            params.presence_penalty = Some(2.5)
        }),
        ("frequency_penalty", |params| {
            params.frequency_penalty = Some(f32::INFINITY)
        }),
        ("logit_bias", |params| {
            params.logit_bias = [(1, 101.0)].into()
        }),
        ("max_tokens", |params| params.max_tokens = Some(0)),
        ("stop", |params| params.stop = vec!["x".into(); 17]),
        ("stop[1]", |params| {
            params.stop = vec!["x".into(), String::new()]
        }),
        ("stop_token_ids", |params| {
            params.stop_token_ids = vec![1; 65]
        }),
    ];
    for (field, spoil) in cases {
        let mut bad = request();
        spoil(bad.sampling_params.as_mut().unwrap());
        assert_eq!(fields(bad), [format!("sampling_params.{field}")]);
    }
}

#[test]
fn the_rest_is_checked_too() {
    let cases: [Case<v1::GenerateRequest>; 10] = [
        ("speculation", |request| request.speculation = 99),
        ("draft_length", |request| request.draft_length = Some(64)),
        ("draft_width", |request| request.draft_width = Some(0)),
        ("draft_methods[0]", |request| {
            request.draft_methods = vec![0]
        }),
        ("draft_methods[1]", |request| {
            request.draft_methods = vec![1, 9]
        }),
        ("history", |request| request.history = Some("x".repeat(129))),
        ("time_limit", |request| {
            request.time_limit = Some(prost_types::Duration {
                seconds: -1,
                nanos: 0,
            })
        }),
        ("time_limit", |request| {
            request.time_limit = Some(prost_types::Duration::default())
        }),
        ("request_id", |request| request.request_id = "x".repeat(129)),
        ("request_id", |request| {
            request.request_id = "two\nlines".into()
        }),
    ];
    for (field, spoil) in cases {
        let mut bad = request();
        spoil(&mut bad);
        assert_eq!(fields(bad), [field]);
    }
}

#[test]
fn an_empty_history_is_none() {
    let mut alone = request();
    alone.history = Some(String::new());
    assert_eq!(Plan::new(alone).unwrap().history, History::Off);
}

#[test]
fn everything_wrong_is_named_at_once() {
    let mut bad = request();
    bad.input = None;
    bad.draft_length = Some(100);
    bad.sampling_params.as_mut().unwrap().max_tokens = Some(0);
    assert_eq!(
        fields(bad),
        ["input", "sampling_params.max_tokens", "draft_length"]
    );
}

/// The problems travel in a header, and a client that gets more than it takes sees none of them.
#[test]
fn a_thousand_problems_are_named_by_their_first_ones() {
    let mut bad = request();
    let empty = v1::ChatMessage::default();
    bad.input = Some(v1::generate_request::Input::Chat(v1::ChatInput {
        messages: vec![empty; 1000],
    }));
    let status = Plan::new(bad.clone()).unwrap_err();
    assert!(status.message().len() + status.details().len() < 2000);
    let named = fields(bad);
    assert_eq!(named.len(), MAX_VIOLATIONS);
    assert_eq!(named[0], "chat.messages[0].role");
}
