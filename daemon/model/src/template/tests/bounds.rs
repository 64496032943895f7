//! No template and no conversation takes more time or memory than it may.

use super::*;
use crate::tokenizer::MAX_WORD_BYTES;

const FEW: EncodeLimits<'static> = EncodeLimits {
    tokens: 100,
    word_bytes: MAX_WORD_BYTES,
    stopped: &|| false,
};

fn within(source: &str, messages: &[ChatMessage], limits: EncodeLimits<'_>) -> TemplateError {
    let template = ChatTemplate::new(source, None).expect("it compiles");
    let prompt = template.prompt(&tokenizer(), messages, limits);
    prompt.map(|prompt| prompt.ids.len()).unwrap_err()
}

#[test]
fn hostile_templates_end_with_an_error() {
    let one = [says("user", "hi")];
    for source in [
        "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        "{% set ns = namespace(t='xxxxxxxx') %}{% for a in range(99) %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}",
        "{{ 'x' * 2000000000 }}",
        "{{ 'x' | center(2000000000) }}",
        "{{ 'x'.ljust(2000000000) }}",
        "{{ '%2000000000d' | format(1) }}",
        "{{ ('\\t' * 9999).expandtabs(9999) | length }}{{ range(99999) | list | tojson(indent=64) | length * 99 }}",
        "{% set ns = namespace(l=[1, 2]) %}{% for a in range(64) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}",
        "{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}",
        "{{ messages | tojson(indent=2000000000) }}",
    ] {
        let error = within(source, &one, FEW);
        let bounded = matches!(
            error,
            TemplateError::Endless { .. } | TemplateError::Failed { .. } | TemplateError::Encode(_)
        );
        // The last two lines of defence differ by template; none may render.
        assert!(
            bounded || matches!(error, TemplateError::Unheard { .. }),
            "{source}: {error}"
        );
    }
}

#[test]
fn an_endless_template_says_where_it_was() {
    let error = within(
        "a\n{% for a in range(99999) %}\n{% for b in range(99999) %}x{% endfor %}{% endfor %}",
        &[says("user", "hi")],
        EncodeLimits::NONE,
    );
    assert!(
        matches!(
            error,
            TemplateError::Endless {
                line: 2..=3,
                messages: 1
            }
        ),
        "{error}"
    );
}

#[test]
fn conversations_that_cannot_fit_are_refused_before_they_are_rendered() {
    let too_many = |messages: &[ChatMessage]| {
        // A template that would fail on sight.
        let error = within("{{ raise_exception('rendered') }}", messages, FEW);
        let limit = crate::tokenizer::EncodeError::TooMany { limit: 100 };
        assert!(
            matches!(error, TemplateError::Encode(e) if e == limit),
            "{error}"
        );
    };
    too_many(&vec![says("user", ""); 1_000_000]);
    too_many(&[says("user", &"long ".repeat(1 << 20))]);
    let rendered = within(CHATML, &[says("user", &"a".repeat(200))], FEW);
    assert!(matches!(rendered, TemplateError::Encode(_)), "{rendered}");
}

#[test]
fn whoever_went_away_is_not_rendered_for() {
    let gone = EncodeLimits {
        stopped: &|| true,
        ..EncodeLimits::NONE
    };
    let error = within(
        "{{ raise_exception('rendered') }}",
        &[says("user", "hi")],
        gone,
    );
    assert!(
        matches!(
            error,
            TemplateError::Encode(crate::tokenizer::EncodeError::Stopped)
        ),
        "{error}"
    );
}

#[test]
fn guarding_takes_time_by_length_only() {
    // Every character begins a control token here; a second would be a thousand times what it takes.
    let names: Vec<String> = (0..2000).map(|n| format!("<|reserved_{n}|>")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let tokenizer =
        Tokenizer::from_gguf(&open(&byte_tokenizer(&names).finish())).expect("a valid tokenizer");
    let template = ChatTemplate::new(CHATML, None).expect("it compiles");
    let typed = says("user", &"<|".repeat(500_000));
    let prompt = template.prompt(
        &tokenizer,
        &[typed],
        EncodeLimits {
            tokens: 50_000,
            ..FEW
        },
    );
    assert!(prompt.is_err());
}
