"""Texts, ours beside llama.cpp's best on this machine, in turn, as ratios.

    pip install llama-cpp-python numpy          (builds llama.cpp for this machine)
    cargo build --release -p tandem-engine --example speculation
    python3 peer_text.py TARGET.gguf DRAFT.gguf PROMPT.txt... [--threads 2] [--rounds 3] [--tokens 96] [--extra-buffers]

For each prompt, greedy: our plain decoding and our default policy, then llama.cpp's plain decoding and its speculation
with chains of two and of four tokens drafted by the same draft. Rounds go over all prompts; the table gives medians of
tokens per second, our speed-up, and our default policy over the best of llama.cpp. llama.cpp speculates as its own
examples do: greedy chains of a fixed length, one batch of the target to verify them.
"""

import argparse
import math
import os
import statistics
import subprocess
import time
from pathlib import Path

import numpy as np

from peer import LlamaCpp

DRAFTED = (2, 4)


class Ours:
    def __init__(self, options):
        target = os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target")
        command = [Path(target) / "release/examples/speculation", options.target, options.draft]
        settings = {"ROUNDS": 1, "TOKENS": options.tokens, "THREADS": options.threads, "METHODS": "plain,goodput"}
        environment = os.environ | {name: str(value) for name, value in settings.items()}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def measure(self, prompt):
        """Tokens, and tokens per second of plain decoding and of the default policy."""
        self.process.stdin.write(f"{prompt}\n")
        self.process.stdin.flush()
        tokens, *rates = self.process.stdout.readline().split()
        return int(tokens), *map(float, rates)


class Context:
    """A model of llama.cpp's that is fed and asked for its likeliest tokens."""

    def __init__(self, model, options):
        self.side = LlamaCpp(model, options.threads, options.extra_buffers)
        self.model, self.bindings = self.side.model, self.side.bindings
        self.past = 0

    def start(self):
        self.model.reset()
        self.model._ctx.kv_cache_clear()
        self.past = 0

    def feed(self, tokens, every_row=False):
        """Feeds tokens and returns the likeliest token after each, or after the last."""
        batch = self.model._batch
        batch.set_batch(batch=tokens, n_past=self.past, logits_all=every_row)
        self.model._ctx.decode(batch)
        self.past += len(tokens)
        rows = range(len(tokens)) if every_row else [-1]
        return [self.likeliest(row) for row in rows]

    def likeliest(self, row):
        logits = self.bindings.llama_get_logits_ith(self.model._ctx.ctx, row)
        return int(np.ctypeslib.as_array(logits, shape=(self.model.n_vocab(),)).argmax())

    def back_to(self, past):
        self.past = past
        self.model._ctx.kv_cache_seq_rm(-1, past, -1)


def plain(target, prompt, count):
    """Tokens per second after the first token, and the tokens."""
    target.start()
    tokens = target.feed(prompt)
    start = time.perf_counter()
    while len(tokens) < count:
        tokens += target.feed(tokens[-1:])
    return (count - 1) / (time.perf_counter() - start), tokens


def speculate(target, draft, drafted, prompt, count):
    """The same with `drafted` tokens a step."""
    target.start()
    draft.start()
    tokens = target.feed(prompt)
    draft.feed(prompt)
    start = time.perf_counter()
    while len(tokens) < count:
        known = prompt + tokens
        guesses = draft.feed(known[draft.past :])
        while len(guesses) < drafted:
            guesses += draft.feed(guesses[-1:])
        chosen = target.feed(tokens[-1:] + guesses, every_row=True)
        accepted = 0
        while accepted < drafted and guesses[accepted] == chosen[accepted]:
            accepted += 1
        tokens += chosen[: accepted + 1]
        target.back_to(len(prompt) + len(tokens) - 1)
        draft.back_to(min(draft.past, len(prompt) + len(tokens) - 1))
    return (len(tokens) - 1) / (time.perf_counter() - start), tokens[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("prompts", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--extra-buffers", action="store_true")
    options = parser.parse_args()

    ours, target, draft = Ours(options), Context(options.target, options), Context(options.draft, options)
    figures = {prompt: [] for prompt in options.prompts}
    for _ in range(options.rounds):
        for prompt in options.prompts:
            count, *rates = ours.measure(prompt)
            tokens = target.model.tokenize(Path(prompt).read_bytes(), add_bos=False, special=True)
            theirs, text = plain(target, tokens, count)
            rates.append(theirs)
            for drafted in DRAFTED:
                rate, drafted_text = speculate(target, draft, drafted, tokens, count)
                rates.append(rate)
                if drafted_text != text:  # its batches are not invariant, so a near tie may turn
                    print(f"llama.cpp's text of {prompt} changed with {drafted} drafted tokens")
            figures[prompt].append((count, *rates))

    names = ["tokens", "ours plain", "ours", "llama.cpp", *(f"drafting {n}" for n in DRAFTED)]
    print(f"\n{'tok/s':<12}" + "".join(f"{name:>12}" for name in names) + "   our speed-up   over its best")
    ratios = []
    for prompt, rounds in figures.items():
        medians = [statistics.median(column) for column in zip(*rounds)]
        best = statistics.median(figure[2] / max(figure[3:]) for figure in rounds)
        gain = statistics.median(figure[2] / figure[1] for figure in rounds)
        ratios.append(best)
        print(f"{Path(prompt).stem:<12}" + "".join(f"{m:12.1f}" for m in medians) + f"{gain:14.2f}x{best:15.2f}x")
    print(f"geometric mean over llama.cpp's best: {math.prod(ratios) ** (1 / len(ratios)):.2f}x")


main()
