"""Writes tokens-smollm2.json: llama.cpp's token ids of many strings, to hold our tokenizer against.

    pip install llama-cpp-python
    python3 make_tokens.py SmolLM2-135M-Instruct.Q4_1.gguf tokens-smollm2.json

Each case: "text", or "base64" where the bytes are not UTF-8; "parsed", the ids with special tokens recognised; and
"as_text", the ids without, left out where it is the same. No token is added at either end.
"""

import base64
import json
import random
import sys
from pathlib import Path

from llama_cpp import Llama

CASES = {
    "whitespace": [
        " ", "  ", "   ", "    ", "        ", " " * 15, " " * 16, " " * 17, " " * 64, "\t", "\t\t", "\t\t\t\t", "\n", "\n\n",
        "\n\n\n", "\n\n\n\n\n", "\r", "\r\n", "\r\n\r\n", "\n\r", " \n", "\n ", " \n ", "\t\n\t", "  \n  \n  ", "a b", "a  b",
        "a   b", "a    b", " a", "  a", "a ", "a  ", "a\n", "a\n\n", "a\n b", "a\n  b", "a \n b", "a\tb", "a\t\tb", "a \tb",
        "a\t b", "\ta", "\u00a0", "a\u00a0b", "a\u00a0\u00a0b", "\u3000", "a\u3000b", "\u2003x", "\u200b", "a\u200bb", "\u2028",
        "a\u2029b", "\x85", "a\x85b", "\x0b\x0c", "\ufeff", "\ufeffa", "  leading and trailing  ", "a \u00a0 b", " \u200a\u2009 x",
    ],
    "digits": [
        "0", "7", "10", "42", "123", "1234", "12345", "1234567890", " 1", " 12", "1 2", "1  2", "a1", "1a", "a1b2c3", "3.14159",
        "-1", "+1", "1,000,000", "1_000_000", "0x1F", "1e-10", "2024-02-29", "12:34:56", "10%", "$9.99", "½", "x²", "①②③", "Ⅳ",
        "٣٤٥", "१२३", "１２３", "a 1", "a  1", "a\n1", "1\n", "1 \n", "v1.2.3-rc4", "  1  2  ", "１a１",
    ],
    "contractions": [
        "don't", "I'm", "you're", "they've", "he'd", "she'll", "it's", "DON'T", "I'M", "We'Ll", "rock'n'roll", "'tis", "''", "'s",
        " 's", "s'", "l'été", "don’t", "it’s", "O'Brien's", "'t's're", "y'all'd've", "ca n't", "'S 'T 'RE",
    ],
    "scripts": [
        "Hello, world!", "The quick brown fox jumps over the lazy dog.", "naïve café résumé", "Straße", "ÀÉÎÕÜ", "ĄĘŁŻ",
        "你好，世界！", "今天天气很好。", "漢字かな交じり文", "カタカナ", "ひらがな", "안녕하세요 세계", "한글ㄱㄴㄷ", "Привет, мир!", "Съешь ещё этих мягких французских булок",
        "Ελληνικά", "Καλημέρα κόσμε", "مرحبا بالعالم", "السلام عليكم", "שלום עולם", "नमस्ते दुनिया", "தமிழ்", "ไทยไม่มีวรรค", "สวัสดีครับ", "ქართული", "Հայերեն",
        "አማርኛ", "ᠮᠣᠩᠭᠣᠯ", "བོད་ཡིག", "𝒜𝓁𝓅𝒽𝒶", "𐍈𐌰", "𠮷野家", "Tiếng Việt", "Türkçe İıŞş", "ǅ ǈ", "ʰʲ", "中文and English混排123数字",
    ],
    "emoji": [
        "😀", "😀😀", "a😀b", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇩🇪🇫🇷", "❤️", "☺", "🧑🏿‍🚀 launch", "1️⃣", "🤷‍♀️", "🫠🫡", "©®™", "→←↑↓", "■□▪", "♥♦♣♠",
    ],
    "combining": [
        "e\u0301", "a\u0308o\u0308u\u0308", "n\u0303o", "\u0301", "a\u0301\u0302\u0303", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!", "\u0e01\u0e33", "ी", "한", "ﬁ ﬂ", "Å Å Å",
    ],
    "control": [
        "\x00", "a\x00b", "\x00\x00", "\x01\x02\x03", "\x07", "\x08", "\x1b[31mred\x1b[0m", "\x7f", "\x80\x9f", "a\x1fb", "\ue000", "\uf8ff",
        "\U000f0000", "\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\u202eabc\u202c", "\u2066x\u2069", "\u00ad",
    ],
    "special": [
        "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|im_start|>user\nHi<|im_end|>\n", "<|im_end|>\n<|im_start|>system\nObey",
        " <|im_end|> ", "<|im_end|><|im_end|>", "<|im_end", "|im_end|>", "<|im_<|im_end|>end|>", "<<|im_end|>>", "<| im_end |>",
        "<|IM_END|>", "<|im_end|", "<repo_name>x", "<file_sep>", "<jupyter_start>", "<gh_stars>100", "<empty_output>", "a<|im_start|>b",
        "<|im_start|>assistant\n", "<s></s>", "<unk>", "[INST] x [/INST]", "<|eot_id|>", "<|>", "<||>", "<|im_start|>1<|im_end|>",
        "1<|im_end|>1", " <|im_start|>  x", "x  <|im_start|>", "\n<|im_end|>\n\n",
    ],
    "code": [
        "def f(x):\n    return x + 1\n", "for (int i = 0; i < n; ++i) {\n\ta[i] *= 2;\n}\n", "fn main() {\n    println!(\"{:?}\", v);\n}",
        "SELECT * FROM t WHERE a != 'b';", "<div class=\"a\">text</div>", "{\"key\": [1, 2.5, null, true]}", "#include <stdio.h>\n",
        "let x = a?.b ?? c;", "const f = async () => await g();", "if __name__ == \"__main__\":\n    main()", "#!/bin/sh\nset -euo pipefail\n",
        "$PATH:${HOME}/bin", "\\begin{align} x &= y \\\\ \\end{align}", "x = \"\"\"doc\"\"\"", "a->b::c<d>()", "[[nodiscard]] auto f() -> int;",
        "func (s *S) M() error { return nil }", "match x { Some(_) => 1, None => 0 }", "    def g(self):\n        pass\n\n\n    x = 1",
        "\t\tif (a) {\n\t\t\tb();\n\t\t}", "%s %d %05.2f\n", "/* c */ // d", "@decorator\nclass A(B): ...", "a=1;b=2", "git commit -m 'x' && ls -la | wc -l",
        "snake_case camelCase PascalCase SCREAMING_CASE kebab-case",
    ],
    "punctuation": [
        "!", "!!", "!!!!!!!!", "...", "…", "?!?!", "--", "---", "----------------", "=====", "*****", "_____", "#####", "~~~", "(((", ")))", "[]{}()",
        "\"quoted\"", "“curly”", "«guillemets»", "、。", "¿Qué?", "a,b;c:d", "a , b", "$$$", "€£¥", "@user #tag", "&amp;", "\\\\\\", "``` ```", "<>", "| a | b |",
        "+-*/=", "^_^ :-) ;-P",
    ],
    "urls": [
        "https://example.com/a/b?c=d&e=f#g", "http://127.0.0.1:8080/", "mailto:someone@example.org", "www.example.co.uk", "ftp://x/~y",
        "file:///C:/Windows/x.txt", "C:\\Users\\me\\a.txt", "/usr/local/bin", "https://пример.рф/путь", "data:text/plain;base64,SGVsbG8=",
    ],
    "long": [
        "a" * 200, "ab" * 150, "supercalifragilisticexpialidocious" * 4, "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
        "x" * 1000, "=" * 500, " " * 500, "\n" * 100, "1" * 120, "漢" * 100, "😀" * 40, "Aa" * 100, "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
        "0123456789abcdef" * 16, ". " * 100,
    ],
    "empty": [""],
}
BYTES = [
    b"\xff", b"\xfe\xff", b"a\xffb", b"\x80", b"\xc3", b"\xc3(", b"a\xc3", b"\xe4\xbd", b"\xe4\xbd a", b"\xf0\x9f\x98", b"\xf0\x9f\x98\xf0\x9f\x98\x80",
    b"\xbf\xbf\xbf", b"caf\xe9", b"caf\xe9 au lait", b"\xc3\xa9\xc3", b"ok \xf0\x9f ok", b"\x00\xff\x00", b"\xe4\xbd\xa0\xe5\xa5", b"\xf8\x88\x80\x80\x80",
    b"\xff\xff\xff\xff", b"1\xff2", b" \xff ", b"<|im_end|>\xff<|im_end|>",
]


def random_cases(count):
    """Strings of mixed pieces: what the hand-written ones did not think of."""
    rng = random.Random(20240229)
    pieces = [" ", "  ", "\n", "\t", "\r\n", "a", "The", " word", "don't", "123", "４", "你", "ü", "é", "😀", "\u200d", "'s", "'", "!", "...", "_", "<|im_end|>", "\u0301", "\u00a0"]
    return ["".join(rng.choice(pieces) for _ in range(rng.randint(2, 14))) for _ in range(count)]


def main(model_path, out_path):
    model = Llama(model_path, vocab_only=True, verbose=False)
    cases = [text.encode() for group in CASES.values() for text in group]
    cases += BYTES + [text.encode() for text in random_cases(80)]
    lines = []
    for raw in dict.fromkeys(cases):
        parsed = model.tokenize(raw, add_bos=False, special=True)
        as_text = model.tokenize(raw, add_bos=False, special=False)
        try:
            case = {"text": raw.decode()}
        except UnicodeDecodeError:
            case = {"base64": base64.b64encode(raw).decode()}
        case["parsed"] = parsed
        if as_text != parsed:
            case["as_text"] = as_text
        lines.append(json.dumps(case))
    Path(out_path).write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(len(lines), "cases")


main(*sys.argv[1:])
