"""Our cpu backend beside llama.cpp on this machine, in turn, as ratios.

    pip install llama-cpp-python numpy          (builds llama.cpp for this machine)
    cargo build --release -p tandem-model --example steps
    python3 peer.py MODEL.gguf... [--threads 2] [--rounds 5] [--quick] [--extra-buffers] [--json OUT]

For each model: decoding, steps of 1 to 16 rows with all logits (what verification needs), and a prompt of 512 tokens.
One round times each figure once on either side before the next figure's turn; the table gives medians over the rounds
of either side's times, of C(m) = step of m rows / step of one, and of the ratios within a round. llama.cpp is timed
around llama_decode itself, ours around the forward. Without --extra-buffers llama.cpp keeps weights as they are in
the file: it repacks some formats for speed, but some virtual machines advertise the AMX tiles that this uses and fault.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROWS = (1, 2, 3, 4, 5, 6, 8, 12, 16)
CONTEXT = 32
PROMPT = 512


class Ours:
    def __init__(self, model, threads):
        target = os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target")
        command = [Path(target) / "release/examples/steps", model, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the steps example ended; its message is above")
        return line.split()

    def order(self, order):
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return statistics.median(map(float, self.line()))

    def step(self, rows, times):
        return self.order(f"step {rows} {times} {CONTEXT}")

    def prompt(self):
        return self.order(f"prompt {PROMPT}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# libgomp's threads otherwise spin between calls, on the cores that our turn needs. Inside a call nothing changes.
os.environ["OMP_WAIT_POLICY"] = "passive"


class LlamaCpp:
    def __init__(self, model, threads, extra_buffers):
        import llama_cpp.llama_cpp as bindings
        from llama_cpp import Llama

        if not extra_buffers:
            defaults = LlamaCpp.defaults = getattr(LlamaCpp, "defaults", bindings.llama_model_default_params)

            def plain():
                parameters = defaults()
                parameters.use_extra_bufts = False
                return parameters

            bindings.llama_model_default_params = plain
        self.bindings = bindings
        self.model = Llama(model, n_ctx=1024, n_threads=threads, n_threads_batch=threads, n_batch=PROMPT, verbose=False)
        self.past = 0

    def decode(self, count, every_row):
        tokens = [100 + 37 * i % 800 for i in range(count)]
        batch = self.model._batch
        batch.set_batch(batch=tokens, n_past=self.past, logits_all=every_row)
        start = time.perf_counter()
        self.model._ctx.decode(batch)
        self.bindings.llama_get_logits(self.model._ctx.ctx)
        seconds = time.perf_counter() - start
        self.past += count
        return seconds

    def seek(self, position):
        self.model.reset()
        self.model._ctx.kv_cache_clear()
        self.past = 0
        if position:
            self.decode(position, False)

    def step(self, rows, times):
        self.seek(CONTEXT)
        seconds = []
        for _ in range(times):
            seconds.append(self.decode(rows, True))
            self.past = CONTEXT
            self.model._ctx.kv_cache_seq_rm(-1, CONTEXT, -1)
        return statistics.median(seconds)

    def prompt(self):
        self.seek(0)
        return self.decode(PROMPT, False)

    def close(self):
        self.model.close()


def compare(model, options):
    sides = Ours(model, options.threads), LlamaCpp(model, options.threads, options.extra_buffers)
    for side in sides:  # touches every weight, fills caches, raises clocks
        side.step(1, 3)
    times = 3 if options.quick else 7
    rounds = []
    for _ in range(2 if options.quick else options.rounds):
        figures = {f"step{rows}": [side.step(rows, times) for side in sides] for rows in ROWS}
        figures["prompt"] = [side.prompt() for side in sides]
        rounds.append(figures)
    for side in sides:
        side.close()

    def median(of):
        return statistics.median(of(figures) for figures in rounds)

    report = {"model": os.path.basename(model), "threads": options.threads, "rows": {}}
    print(f"\n{report['model']}, {options.threads} threads, medians of {len(rounds)} rounds")
    print("rows   ours ms  llama.cpp ms   C(m) ours  C(m) llama.cpp   ours faster by")
    for rows in ROWS:
        ours, theirs = (median(lambda f: f[f"step{rows}"][side]) for side in (0, 1))
        cost = [median(lambda f: f[f"step{rows}"][side] / f["step1"][side]) for side in (0, 1)]
        ratio = median(lambda f: f[f"step{rows}"][1] / f[f"step{rows}"][0])
        report["rows"][rows] = {"ours": ours, "peer": theirs, "cost": cost, "ratio": ratio}
        print(f"{rows:4} {1e3 * ours:9.2f} {1e3 * theirs:13.2f} {cost[0]:11.2f} {cost[1]:15.2f} {ratio:15.2f}x")
    ours, theirs = (median(lambda f: PROMPT / f["prompt"][side]) for side in (0, 1))
    report["prompt"] = {"ours": ours, "peer": theirs, "ratio": median(lambda f: f["prompt"][1] / f["prompt"][0])}
    print(f"prompt of {PROMPT}: {ours:.0f} and {theirs:.0f} tok/s, ours faster by {report['prompt']['ratio']:.2f}x")
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--extra-buffers", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    reports = [compare(model, options) for model in options.models]
    if options.json:
        Path(options.json).write_text(json.dumps(reports, indent=1))


if __name__ == "__main__":
    main()
