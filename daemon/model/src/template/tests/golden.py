#!/usr/bin/env python3
"""Writes golden.json: what `transformers` renders of the templates below. The test beside it renders them with ours.

    pip install transformers jinja2 && python3 golden.py

Each template stands for something that models' templates do. What `transformers` refuses has an error in place of a text.
"""

import datetime
import json
import os
from pathlib import Path

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
from transformers.utils import chat_template_utils as hub  # noqa: E402


class Noon(datetime.datetime):
    """Saturday, 2025-07-26, 12:05:09."""

    @classmethod
    def now(cls, tz=None):
        return cls(2025, 7, 26, 12, 5, 9, 30)


hub.datetime = Noon

CONVERSATIONS = {
    "one": [{"role": "user", "content": "Why is the sky blue?"}],
    "odd": [{"role": "user", "content": " <b>'Tom & \"Jerry\"'</b>\té漢😀\\n \n"}],
    "long": [
        {"role": "system", "content": "  Be kind.\n"},
        {"role": "user", "content": "Hello, there"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHi!"},
        {"role": "user", "content": "Bye\n"},
    ],
}

# Layouts, as families have them.
LAYOUTS = [
    # ChatML with a default system message.
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are helpful.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    # Blocks for training, on lines of their own and in one line.
    "{%- for message in messages -%}\n    {%- if message.role == \"assistant\" -%}\n        {% generation %}\n"
    "        {{ message.content.lstrip(\"\\n\") + eos_token }}\n        {% endgeneration %}\n    {%- else -%}\n"
    "        {{ '[' ~ message.role ~ ']' ~ message.content }}\n    {%- endif -%}\n{%- endfor -%}\n",
    "{% for m in messages %}{% generation %}{% set x = m.role %}{{ x }};{% endgeneration %}{{ x is defined }} {% endfor %}",
    "{% for m in messages %}{%- generation -%} {{ loop.index }}/{{ loop.length }} {%- endgeneration -%}\n{% endfor %}",
    # A date, in each of the ways that are asked for.
    "{%- if strftime_now is defined %}{%- set date_string = strftime_now(\"%d %b %Y\") %}{%- else %}"
    "{%- set date_string = \"26 Jul 2024\" %}{%- endif %}Today Date: {{ date_string }}",
    "{%- set today = strftime_now(\"%Y-%m-%d\") %}{%- set default_system_message = \"Today is \" + today %}"
    "{{- bos_token }}{{- '[SYSTEM_PROMPT]' + default_system_message + '[/SYSTEM_PROMPT]' }}",
    # Alternation that is checked, and a system message that goes into the first turn.
    "{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}"
    "{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}"
    "{%- for message in loop_messages %}{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{- raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{%- endif %}"
    "{%- if message['role'] == 'user' %}{%- if loop.last and system_message is defined %}"
    "{{- '[INST] ' + system_message + '\\n\\n' + message['content'] + '[/INST]' }}{%- else %}"
    "{{- '[INST] ' + message['content'] + '[/INST]' }}{%- endif %}{%- elif message['role'] == 'assistant' %}"
    "{{- ' ' + message['content'].strip() + eos_token }}{%- endif %}{%- endfor %}",
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ messages[0].content }}",
    # Thinking that is left out of earlier turns, with namespaces and a loop backwards.
    "{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n"
    "{%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n"
    "    {%- if ns.multi_step_tool and message.role == \"user\" and message.content is string and not"
    "(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}\n"
    "        {%- set ns.multi_step_tool = false %}\n        {%- set ns.last_query_index = index %}\n    {%- endif %}\n"
    "{%- endfor %}\n{%- for message in messages %}\n    {%- if message.role == 'assistant' %}\n"
    "        {%- set content = message.content %}\n        {%- set reasoning_content = '' %}\n"
    "        {%- if '</think>' in content %}\n"
    "            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n"
    "            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n        {%- endif %}\n"
    "        {{- '<a>' + content + '|' + reasoning_content }}\n    {%- else %}\n"
    "        {{- '<' + message.role + '>' + message.content }}\n    {%- endif %}\n{%- endfor %}\n{{ ns.last_query_index }}\n",
    # Contents that may be texts or parts.
    "{%- for message in messages -%}{%- if message['content'] is string -%}{{ message['content'] | trim }}"
    "{%- elif message['content'] is iterable -%}{%- for item in message['content'] -%}{{ item['text'] }}{%- endfor -%}"
    "{%- else -%}{{ raise_exception(\"Invalid content type\") }}{%- endif -%}{%- endfor -%}",
    # Macros, with defaults and with named arguments, that call each other.
    "{%- macro turn(role, text, end='<e>\\n') -%}<{{ role }}>{{ text | trim }}{{ end }}{%- endmacro -%}\n"
    "{%- macro all(ms) -%}{%- for m in ms %}{{ turn(m.role, text=m.content) }}{% endfor -%}{%- endmacro -%}\n"
    "{{ all(messages) }}{{ turn('x', 'y', end='') }}",
    "{%- macro render_extra_keys(json_dict, handled_keys) -%}\n    {%- if json_dict is mapping %}\n"
    "        {%- for json_key in json_dict if json_key not in handled_keys %}\n"
    "            {%- if json_dict[json_key] is mapping or (json_dict[json_key] is sequence and json_dict[json_key] is not string) %}\n"
    "                {{- '\\n<' ~ json_key ~ '>' ~ (json_dict[json_key] | tojson | safe) ~ '</' ~ json_key ~ '>' }}\n"
    "            {%- else %}\n"
    "                {{-'\\n<' ~ json_key ~ '>' ~ (json_dict[json_key] | string) ~ '</' ~ json_key ~ '>' }}\n"
    "            {%- endif %}\n        {%- endfor %}\n    {%- endif %}\n{%- endmacro %}\n"
    "{{ render_extra_keys({'b': [1, 2.5, none], 'a': 'x', 'c': {'z': true, 'y': []}, 'd': 3}, ['a']) }}",
    # Everything that may be absent.
    "{{ tools is none }}{{ documents is none }}{{ tools is defined }}{{ unk_token is defined }}{{ unk_token }}"
    "{{ pad_token }}{{ custom is not defined }}{% if tools %}t{% endif %}{{ messages[0].tool_calls is defined }}"
    "{{ messages[0].get('name', 'nobody') }}{{ messages[0]['x'] is undefined }}{{ 'tool_calls' in messages[0] }}",
    "{%- if not date_string is defined %}{%- set date_string = 'd' %}{%- endif %}{{ date_string }}"
    "{%- if builtin_tools is defined or tools is not none %}tools{%- endif %}{{ (custom_tools or []) | length }}",
    # Loops with conditions, controls and else.
    "{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.role }}{% if loop.index == 2 %}{% break %}{% endif %}"
    "{% else %}none{% endfor %}",
    "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}{{ m.role }}{{ loop.last }} {% endfor %}"
    "{% for m in [] %}x{% else %}none{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a * b }},{% endfor %}{% for k, v in {'z': 1, 'a': 2}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined else '-' }}{{ loop.cycle('a', 'b') }}"
    "{{ loop.revindex }}{{ loop.changed(m.role) }} {% endfor %}",
    # Joining and choosing.
    "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join('|') }}",
    "{{ messages | rejectattr('role', 'in', ['system', 'user']) | list | length }}",
    "{{ (messages | selectattr('role', '==', 'user') | list)[-1].content }}{{ messages | map(attribute='role') | unique | join }}",
    "{% for role, group in messages | groupby('role') %}{{ role }}:{{ group | length }} {% endfor %}",
    "{{ messages | map('length') | list }}{{ messages | map(attribute='name', default='?') | join }}",
    # White space: blocks on their own lines, marks either way, comments, raw text.
    "a\n  {% if true %}\n  b\n  {% endif %}\nc\n",
    "a  {%+ if true %}  b {%- endif %}\n\n  {# note #}\n  c {#- note -#}  d\n",
    "  {{- ' x ' -}}  \n{% raw %}{{ y }}{% if %}{% endraw %}\n{%- raw -%} z {%- endraw %}",
    "{% set x %}\n one\n{% endset %}[{{ x }}]{% filter upper %}up{% endfilter %}{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}",
    "line\r\n{% if true %}\r\nx{% endif %}\n\n",
]

# One expression each.
EXPRESSIONS = [
    "messages[0].content | tojson",
    "messages | tojson",
    "messages[0] | tojson(indent=4)",
    "messages | tojson(indent=2, ensure_ascii=True)",
    "{'b': 1, 'a': [], 'c': {}, 'd': [1, [2, {'e': none}]]} | tojson(indent=2)",
    "{'b': 1, 'a': 2} | tojson(sort_keys=True)",
    "{'b': 1, 'a': [1, 2]} | tojson(separators=(',', ':'))",
    "{'b': 1, 'a': [1, 2]} | tojson(False, 1, (',', ' = '))",
    "[1.0, 0.1, 1e-7, 1e22, -0.0, 12345678901234567890, true, none] | tojson",
    "{1: 'a', none: 'b', true: 'c', 1.5: 'd'} | tojson",
    "('\\x00\\x1f\\x7f\\u2028/</script>' + '\\b\\f\\r') | tojson",
    "'é😀' | tojson(ensure_ascii=true)",
    "[] | tojson(indent=4)",
    "[1, 2] | tojson(indent='\\t')",
    "[1, 2] | tojson(indent=0)",
    "undefined_thing | tojson",
    "true ~ false ~ none ~ 1 ~ 1.0 ~ 2.50",
    "[true, none, 'a', \"it's\", 1.0, (1,), {'k': 'v'}]",
    "{'a': [1], 'b': 'x\\ny'} | string",
    "1e16", "1e15", "0.00001", "1/3", "10/2", "7//2", "-7//2", "-7 % 3", "2**10", "2**-1", "7 % 2.5", "1_000",
    "'a' * 3", "[0] * 2", "[1] + [2]", "(1, 2) + (3,)", "'a' + 1", "1 + 'a'", "none + 'a'",
    "'{} {}'.format('a', 1)", "'{x}-{0:>4}'.format('a', x=2)",
    "'%s' | format('x')",
    "1 < 2 < 3", "1 == 1.0", "'1' == 1", "not true and false or true", "'a' if false", "'a' if false else 'b'",
    "1 in [1]", "'x' not in 'abc'", "'role' in messages[0]", "2 is divisibleby 2", "3 is odd", "3 is even",
    "'a' is string", "1 is number", "1 is integer", "1.0 is float", "true is boolean", "1 is boolean", "true is integer",
    "true is number", "none is none", "'a' is sequence", "{} is sequence", "[] is sequence", "1 is sequence", "'a' is iterable",
    "{} is iterable", "1 is iterable", "none is iterable", "{} is mapping", "[] is mapping", "x is undefined", "x is defined",
    "x is none", "messages is defined", "true is true", "1 is true", "'a' is false", "false is false", "'ab' is lower", "'AB' is upper",
    "1 is eq 1", "1 is ne(2)", "1 is sameas 1", "2 is gt 1", "2 is ge 2", "1 is lessthan 2", "1 is in [1, 2]", "range is callable",
    "'upper' is filter", "'odd' is test", "'nope' is filter", "'a' is escaped",
    "'abc'[0]", "'abc'[-1]", "'abc'[::-1]", "'abcdef'[1:-1:2]", "[1, 2, 3, 4][-2:]", "[1, 2, 3][5:]", "messages[-1].role",
    "messages[1:] | length", "(1, 2, 3)[1]", "{'a': 1}.a", "{'a': 1}['a']", "{'items': 3}['items']", "messages[7] is defined",
    "messages[0].role.upper()",
    "'a,b,,c'.split(',')", "'a,b,c'.split(',', 1)", "' a  b '.split()", "'a b c'.split(maxsplit=1)", "'a-b-c'.split('-', maxsplit=1)",
    "'a-b-c'.rsplit('-', 1)", "'a b  c '.rsplit(None, 1)", "' a b  c '.split(None, 1)", "'abc'.split('')", "''.split()", "''.split(',')",
    "'a\\nb\\r\\nc\\u2028d\\n'.splitlines()", "'a\\nb\\n'.splitlines(true)", "'a=b=c'.partition('=')", "'a=b=c'.rpartition('=')",
    "'abc'.partition('x')", "'abc'.rpartition('x')", "'  x '.strip()", "'--x--'.strip('-')", "'xyx'.lstrip('x')", "'xyx'.rstrip('x')",
    "'\\u3000x\\x1f'.strip()", "'hello'.replace('l', 'L')", "'hello'.replace('l', 'L', 1)", "'aaa'.count('a')", "'abc'.find('c')",
    "'abc'.find('x')", "'abcb'.rfind('b')", "'abc'.index('b')", "'abc'.index('x')", "'abc'.startswith('ab')",
    "'abc'.startswith(('x', 'a'))", "'abc'.endswith('bc')", "'abc'.removeprefix('a')", "'abc'.removesuffix('c')",
    "'hello world'.title()", "\"they're bill's\".title()", "'hELLO'.capitalize()", "'AbC'.swapcase()", "'ABC'.lower()", "'abc'.upper()",
    "'Straße'.upper()", "'ß'.casefold()", "'ab1'.isalnum()", "'ab'.isalpha()", "'12'.isdigit()", "'12'.isnumeric()", "'12'.isdecimal()",
    "' '.isspace()", "'Ab'.istitle()", "'AB'.isupper()", "'ab'.islower()", "'é'.isascii()", "'7'.zfill(3)", "'-7'.zfill(4)",
    "'a'.ljust(3, '.')", "'a'.rjust(3)", "'a'.center(4, '*')", "'ab'.center(5, '*')", "'a\\tb'.expandtabs(4)", "'-'.join(['a', 'b'])",
    "'a_b'.isidentifier()", "'abc'.nope()", "[1, 2, 1].count(1)", "[1, 2].index(2)", "[1, 2].index(3)", "[1].append(2)",
    "{'b': 1, 'a': 2}.keys() | list", "{'b': 1, 'a': 2}.values() | list", "{'b': 1, 'a': 2}.items() | list", "{'a': 1}.get('a')",
    "{'a': 1}.get('b')", "{'a': 1}.get('b', 2)", "{'a': 1}.update({'b': 2})", "{'a': 1}.pop('a')", "{'z': 1, 'a': {'y': 2, 'b': 3}}",
    "{'z': 1, 'a': 2} | list", "{'z': 1, 'a': 2} | first", "dict(z=1, a=2)", "dict([('b', 1)])", "dict({'a': 1}, b=2)",
    "{'b': 1, 'a': 2} | dictsort", "{'b': 1, 'a': 2} | dictsort(by='value')", "{'b': 1, 'A': 2} | dictsort(true)",
    "{'b': 1, 'a': 2} | dictsort(reverse=true)", "{'b': 1, 'a': 2} | items | list", "none | items | list",
    "[3, 1, 2] | sort", "['b', 'A', 'c'] | sort", "['b', 'A'] | sort(case_sensitive=true)", "[1, 2] | sort(reverse=true)",
    "messages | sort(attribute='role') | map(attribute='role') | list", "[1, 2, 3] | sum", "messages | map(attribute='content') | map('length') | sum",
    "[1, 2, 3] | max", "[1, 2] | min", "[1, 2, 3] | first", "[1, 2, 3] | last", "'abc' | first", "'abc' | last", "[] | first", "[] | last",
    "'abc' | list", "'abc' | reverse", "[1, 2] | reverse | list", "'abc' | length", "[1, 2] | count", "messages | length",
    "[1, 2, 3, 4, 5] | batch(2) | list", "[1, 2, 3] | batch(2, 0) | list", "[1, 2, 3, 4, 5] | slice(2) | list",
    "['a', 'A', 'b'] | unique | list", "[1, 2, 3, 4] | select('odd') | list", "[1, 2, 3] | reject('odd') | list", "[0, 1, ''] | select | list",
    "['a', 'b'] | map('upper') | list", "[1, 2] | join(', ')", "messages | join(', ', attribute='role')", "[1, none, 'x'] | join('-')",
    "' x ' | trim", "'xxaxx' | trim('x')", "'hello world' | title", "\"they're bill's\" | title", "'hello WORLD' | capitalize", "'abc' | upper",
    "'ABC' | lower", "'a b' | replace(' ', '_')", "'aaa' | replace('a', 'b', 2)", "x | default('d')", "none | default('d')",
    "'' | default('d', true)", "x | d('e')", "none | default('d', boolean=true)", "'3' | int", "'x' | int", "'x' | int(7)", "3.9 | int",
    "'0x1f' | int(0, 16)", "'3.5' | float", "'x' | float", "'x' | float(1.5)", "3 | string", "-3 | abs", "2.567 | round(2)", "2.5 | round",
    "2.1 | round(0, 'ceil')", "2.9 | round(method='floor')", "42 | round", "'a\\nb' | indent", "'a\\nb' | indent(2, true)", "'a\\n\\nb' | indent(2, blank=true)",
    "'a\\nb' | indent('> ')", "'<a>&\"' | escape", "'<a>' | e", "'<a>' | safe", "'<a>' | safe | escape", "'<a>' | safe | forceescape",
    "'a b c' | wordcount", "'foo bar baz qux' | truncate(9)", "'foo bar baz qux' | truncate(11)", "'foo bar baz qux' | truncate(9, true)",
    "'foo bar baz qux' | truncate(9, false, '..', 0)", "'hello big world' | wordwrap(6)", "'abcdefghij' | wordwrap(4)",
    "'abcdefghij kl' | wordwrap(4, false)", "'x' | center(5)", "'x' | center(4)", "1000 | filesizeformat", "1 | filesizeformat",
    "123456789 | filesizeformat", "123456 | filesizeformat(true)", "'<p>a  <b>b</b></p><!-- c -->' | striptags", "'a b/c?é' | urlencode",
    "{'a b': 'c&d', 'e': 1} | urlencode", "{'a': 1, 'b': none, 'c': '<'} | xmlattr", "messages | attr('x') is defined",
    "[[1, 2], [3, 4]] | map('first') | list", "[[1, 2], [3]] | sum(start=[])", "'abc' | pprint", "'nope' | nope", "1 is nope", "nope()",
    "range(3) | list", "range(1, 7, 2) | list", "range(3, 0, -1) | list", "range(5)[-1]", "namespace(a=1).a", "namespace({'b': 2}).b",
    "[a for a in b]", "cycler('a', 'b').next()", "joiner(', ') is defined", "messages.0.role", "1 if messages else 2",
    "messages[0]['content'] ~ '!' | upper", "-1 | abs", "(messages | first).role", "'a' 'b'", "\"\\u00e9\\x41\\n\\\\\"",
    "'abc' in ['abc']", "none == false", "[] == false", "[1, 2] == (1, 2)", "'a' < 'b'", "x.y", "x.y.z", "messages[0].x.y", "not x", "x ~ 'a'", "x + 'a'",
    "x == none", "none.y", "[1, 2] | tojson ~ 'x'", "(1, 2) | tojson", "'<>' ~ ('<' | escape)", "loop is defined",
]


def case(conversation, template):
    try:
        text = hub.render_jinja_template(
            [CONVERSATIONS[conversation]],
            chat_template=template,
            add_generation_prompt=True,
            bos_token="<s>",
            eos_token="</s>",
            pad_token="<pad>",
        )[0][0]
        result = {"text": text}
    except Exception as error:  # noqa: BLE001: whatever it is, ours has to refuse it as well
        result = {"error": f"{type(error).__name__}: {error}"}
    return {"conversation": conversation, "template": template, **result}


def main():
    cases = [case(name, layout) for layout in LAYOUTS for name in CONVERSATIONS]
    cases += [case("odd" if "tojson" in e else "long", "{{ " + e + " }}") for e in EXPRESSIONS]
    text = json.dumps({"conversations": CONVERSATIONS, "cases": cases}, ensure_ascii=False, indent=1)
    Path(__file__).with_name("golden.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
