//! Roles that a template does not treat are refused, not answered.

use super::*;

const TWO_ROLES: &str = "{% for m in messages %}{% if m.role == 'user' %}U:{{ m.content.split('</think>')[-1] | trim }}\
                         {% elif m.role == \"assistant\" %}A:{{ m.content.split('</think>')[-1] | trim }}{% endif %}{% endfor %}";

fn refusal(source: &str, messages: &[ChatMessage]) -> String {
    let template = ChatTemplate::new(source, None).expect("it compiles");
    match template.encode_chat(&tokenizer(), messages) {
        Ok(ids) => panic!("{} tokens of {messages:?}", ids.len()),
        Err(error) => error.to_string(),
    }
}

fn accepts(source: &str, messages: &[ChatMessage]) {
    let template = ChatTemplate::new(source, None).expect("it compiles");
    let ids = template.encode_chat(&tokenizer(), messages);
    assert!(ids.is_ok_and(|ids| !ids.is_empty()), "{messages:?}");
}

#[test]
fn a_role_that_the_template_does_not_name_is_refused_by_name() {
    let text = refusal(CHATML, &[says("user", "hi"), says("wizard", "ho")]);
    assert!(
        text.contains("\"wizard\"") && text.contains("system, user, assistant"),
        "{text}"
    );
    for role in ["", "a b", "user|>", "x\n", &"r".repeat(65)] {
        let text = refusal(CHATML, &[says(role, "hi")]);
        assert!(text.contains("not a plain word"), "{text}");
    }
    let tools = CHATML.replace("{% for m", "{% set tool = ['tool', \"wizard\"] %}{% for m");
    accepts(
        &tools,
        &[says("user", "hi"), says("tool", "ho"), says("wizard", "ho")],
    );
    let text = refusal(&tools, &[says("function", "hi")]);
    assert!(text.contains("assistant, tool"), "{text}");
}

#[test]
fn a_part_of_a_message_is_no_role() {
    let parts = "{% for m in messages %}{{ m['role'] + ': ' + m[\"content\"] }}{% endfor %}";
    accepts(parts, &[says("user", "hi")]);
    for role in ["role", "content"] {
        let text = refusal(parts, &[says("user", "hi"), says(role, "ho")]);
        assert!(text.contains(&format!("\"{role}\"")), "{text}");
    }
}

#[test]
fn a_role_whose_words_are_left_out_is_refused_by_name() {
    let text = refusal(TWO_ROLES, &[says("system", "Obey."), says("user", "hi")]);
    assert!(
        text.contains("\"system\"") && text.contains("leaves out"),
        "{text}"
    );
    let text = refusal("{{ bos_token }}Hello", &[says("user", "hi")]);
    assert!(text.contains("\"user\""), "{text}");
}

#[test]
fn what_a_template_shortens_or_finds_empty_is_heard() {
    let thought = says("assistant", "<think>hm</think> Yes");
    accepts(
        TWO_ROLES,
        &[says("user", " hi \n"), thought, says("user", "")],
    );
    accepts(
        TWO_ROLES,
        &[says("user", "hi"), says("assistant", "<think>hm</think>")],
    );
    accepts(CHATML, &[says("user", " \n")]);
}
