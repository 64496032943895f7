//! Requests as bytes of the wire: what decodes is checked, and what passes the checks chooses tokens.

use prost::Message as _;
use tandem_daemon::fuzzing;
use tandem_engine::sampling::Sampler;
use tandem_fuzz::{Target, check};
use tandem_proto::v1;

/// Tokens of the row that is sampled from; some requests name more.
const VOCABULARY: usize = 97;

#[test]
fn proto_requests() {
    let mut logits: Vec<f32> = (0..VOCABULARY)
        .map(|at| (at as f32 * 0.7).sin() * 9.0)
        .collect();
    logits[3] = f32::NAN;
    logits[5] = f32::NEG_INFINITY;
    logits[7] = f32::INFINITY;
    let target = Target {
        name: "request",
        words: &[
            b"\x00\x00\xc0\x7f",
            b"\x00\x00\x80\x7f",
            b"\x00\x00\x80\xff",
            b"\x00\x00\x00\x80",
            b"\x01\x00\x00\x00",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\xff\xff\xff\xff\x0f",
            b"\x32\x02\x08\x01",
            b"\x2a\x04\x0a\x02\x0a\x00",
            b"\x4a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        ],
        // Dozens of fields, each with a sentence about what is wrong with it.
        fixed_bytes: 256 << 10,
        // On the wire a message in a list can be two bytes; in memory it is 48, in lists that double. Who may send requests
        // may run programs as this user, and what a message may hold is limited.
        times: 80,
        seeds: seeds(),
    };
    check(&target, |input| {
        let Ok(request) = v1::GenerateRequest::decode(input) else {
            return "no message".to_owned();
        };
        let checked = match fuzzing::checked(request) {
            Ok(checked) => checked,
            Err(status) => return format!("{:?}: {}", status.code(), status.message()),
        };
        let (sampling, prompt) = checked;
        let named = sampling.validate(VOCABULARY).is_ok();
        let prompt: Vec<u32> = prompt
            .into_iter()
            .map(|id| id % VOCABULARY as u32)
            .collect();
        let mut sampler = Sampler::new(sampling, &prompt, 7);
        for position in 0..3 {
            let distribution = sampler.distribution(&logits[..], &[1, 2]);
            let token = sampler.draw(&distribution, prompt.len() + position);
            assert!((token as usize) < VOCABULARY, "token {token}");
            for other in sampler.draw_distinct(&distribution, position, 4) {
                assert!((other as usize) < VOCABULARY, "token {other}");
            }
            sampler.commit(token);
        }
        format!("sampled {named}")
    });
}

fn seeds() -> Vec<Vec<u8>> {
    use v1::generate_request::Input;
    let text = v1::GenerateRequest {
        input: Some(Input::Text("hello".into())),
        ..v1::GenerateRequest::default()
    };
    let full = v1::GenerateRequest {
        pair: "default".into(),
        request_id: "a-1".into(),
        input: Some(Input::TokenIds(v1::TokenIds { ids: vec![1, 2, 3] })),
        sampling_params: Some(v1::SamplingParams {
            temperature: Some(0.8),
            top_k: Some(40),
            top_p: Some(0.9),
            min_p: Some(0.05),
            repetition_penalty: Some(1.1),
            presence_penalty: Some(0.5),
            frequency_penalty: Some(-0.5),
            logit_bias: [(5, 100.0), (96, -100.0)].into(),
            seed: Some(7),
            max_tokens: Some(16),
            stop: vec!["\n\n".into()],
            stop_token_ids: vec![2],
            ignore_eos: true,
            logprobs: Some(5),
        }),
        speculation: 1,
        draft_length: Some(8),
        time_limit: Some(prost_duration(1, 500)),
        draft_methods: vec![1, 3],
        history: Some("buffer".into()),
        draft_width: Some(2),
        keep_alive: Some(prost_duration(-1, 0)),
    };
    let chat = v1::GenerateRequest {
        input: Some(Input::Chat(v1::ChatInput {
            messages: vec![v1::ChatMessage {
                role: "user".into(),
                content: "hello".into(),
            }],
        })),
        ..full.clone()
    };
    [text, full, chat]
        .iter()
        .map(|it| it.encode_to_vec())
        .collect()
}

fn prost_duration(seconds: i64, nanos: i32) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos }
}
