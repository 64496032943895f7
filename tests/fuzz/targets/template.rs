//! Chat templates: programs from model files, and conversations from whoever calls.

use std::sync::Arc;

use tandem_fuzz::{Source, Target, check};
use tandem_model::template::{ChatMessage, ChatTemplate};
use tandem_model::testing::{byte_tokenizer, open};
use tandem_model::tokenizer::{EncodeLimits, Tokenizer};

use crate::chain;

const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + \
    '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
const LLAMA: &str = "{{- bos_token }}{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content']|trim %}\
    {%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}{%- for message in messages %}\
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}\
    {{- '<|start|>' ~ message.role ~ (message.content | trim) }}{%- endfor %}";
const NAMESPACE: &str = "{% set ns = namespace(x='', n=0) %}{% for i in range(10) %}{% set ns.x = ns.x ~ 'ab' %}{% set ns.n = ns.n + 1 %}\
    {% endfor %}{{ ns.x }}{% macro f(a, b=2) %}{{ a ~ b }}{% endmacro %}{{ f(1) }}{{ messages | tojson(indent=2) }}\
    {{ strftime_now('%d %b %Y') }}{{ 'a,b'.split(',') | join('-') | upper | replace('A', 'b') }}";

/// Sources that grow what they hold: memory has to end before the machine's does.
const BOMBS: [&str; 5] = [
    "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
    "{{ 'a' * 4000000000 }}",
    "{{ range(100000) | join('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') | replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') }}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% for i in range(1000) %}{% for j in range(1000) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% endfor %}",
];

/// As the daemon has them for an ordinary context.
const LIMITS: EncodeLimits<'static> = EncodeLimits {
    tokens: 8192,
    word_bytes: 64 << 10,
    ..EncodeLimits::NONE
};

/// What a rendered conversation may take beside its share of the input, however the template repeats things: a template may
/// make 64 MB of text, a text that grows has up to twice its length of room, and a list of 100,000 values takes some more.
const RENDERED: usize = 160 << 20;

const WORDS: &[&[u8]] = &[
    b"{% for i in ",
    b"{% endfor %}",
    b"{% if ",
    b"{% elif ",
    b"{% else %}",
    b"{% endif %}",
    b"{% set ",
    b"{% macro f(a) %}",
    b"{% endmacro %}",
    b"{% generation %}",
    b"{% endgeneration %}",
    b"{% raw %}",
    b"{% break %}",
    b"{% continue %}",
    b"{{ ",
    b" }}",
    b"{#",
    b"#}",
    b"range(99999)",
    b"namespace(x=1)",
    b"loop.index0",
    b"messages[-1]",
    b"message.content",
    b"[::-1]",
    b"[1:]",
    b" | tojson",
    b" | trim",
    b" | join",
    b" | selectattr('role', 'equalto', 'user') | list",
    b" | length",
    b" | replace('a', 'aaaaaaaa')",
    b".split('a')",
    b".strip()",
    b".items()",
    b".format(",
    b"'%s' % ",
    b"**",
    b"//",
    b"~",
    b"not in",
    b"is defined",
    b"is mapping",
    b"raise_exception(",
    b"strftime_now('%Y')",
    b"9223372036854775807",
    b"1e308",
    b"((((((((((((((((",
    b"[[[[[[[[[[[[[[[[",
    "\u{e000}".as_bytes(),
    b"<|im_end|>",
    b"\x01user\x02",
];

#[test]
fn chat_templates() {
    let gguf = open(&byte_tokenizer(&["<|im_start|>", "<|im_end|>"]).finish());
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    let target = Target {
        name: "template",
        words: WORDS,
        fixed_bytes: RENDERED,
        // A template is a program: what it may take grows with the conversation, by its fuel.
        times: 512,
        seeds: seeds(),
    };
    check(&target, |input| {
        let (template, messages) = parts(input);
        let clock: tandem_model::template::Clock = Arc::new(|pattern| pattern.replace('%', ""));
        let template = match ChatTemplate::new(&template, Some(clock)) {
            Ok(template) => template,
            Err(error) => return chain(&error),
        };
        match template.prompt(&tokenizer, &messages, LIMITS) {
            Ok(prompt) if prompt.ids.is_empty() => "nothing".to_owned(),
            Ok(_) => "tokens".to_owned(),
            Err(error) => chain(&error),
        }
    });
}

/// The source, then messages, each behind a byte 1, with a byte 2 between role and content.
fn parts(input: &[u8]) -> (String, Vec<ChatMessage>) {
    let mut source = Source::new(input);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let template = text(source.until(1));
    let mut messages = Vec::new();
    while !source.is_empty() {
        let mut message = Source::new(source.until(1));
        messages.push(ChatMessage {
            role: text(message.until(2)),
            content: text(message.rest()),
        });
    }
    (template, messages)
}

fn seeds() -> Vec<Vec<u8>> {
    let sources = [CHATML, LLAMA, NAMESPACE, ""].into_iter().chain(BOMBS);
    let talk = "\u{1}system\u{2}be brief\u{1}user\u{2}hello <|im_end|>\u{1}assistant\u{2}hi\u{1}user\u{2}bye";
    sources
        .map(|source| format!("{source}{talk}").into_bytes())
        .collect()
}
