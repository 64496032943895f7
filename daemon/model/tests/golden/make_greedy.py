"""Writes greedy-smollm2.json: llama.cpp's greedy continuation of the prompts in prompts/, to hold our decoder against.

    pip install llama-cpp-python numpy
    python3 make_greedy.py SmolLM2-135M-Instruct.Q4_1.gguf greedy-smollm2.json

For each prompt: its text and token ids (special tokens parsed, none added), up to 64 greedy token ids, the margin
between the two highest logits at each of these steps, and at the last prompt position the logits of 64 token ids
spread over the vocabulary, their mean over all tokens, and the two highest ids. A step whose margin is small may
go either way on other arithmetic; the logits show how far apart two implementations are before that.
"""

import json
import sys
from pathlib import Path

import numpy as np
import llama_cpp.llama_cpp as bindings
from llama_cpp import Llama, llama_get_logits_ith

STEPS = 64


def plain_buffers(defaults=bindings.llama_model_default_params):
    """Keeps weights as they are in the file: repacked ones compute differently, and some virtual machines
    advertise the AMX tiles that repacking uses but fault on them."""
    parameters = defaults()
    parameters.use_extra_bufts = False
    return parameters


bindings.llama_model_default_params = plain_buffers
model_path, out_path = sys.argv[1], sys.argv[2]
model = Llama(model_path, n_ctx=2048, n_threads=1, n_threads_batch=1, n_batch=512, verbose=False)
vocabulary = model.n_vocab()
probe = [i * (vocabulary // 64) for i in range(64)]


class Context:
    """The KV cache of one sequence."""

    def __init__(self):
        model.reset()
        model._ctx.kv_cache_clear()
        self.past = 0

    def logits(self, tokens):
        """Appends tokens; returns the logits after the last."""
        model._batch.set_batch(batch=tokens, n_past=self.past, logits_all=False)
        model._ctx.decode(model._batch)
        self.past += len(tokens)
        return np.ctypeslib.as_array(llama_get_logits_ith(model._ctx.ctx, -1), shape=(vocabulary,)).copy()


golden = {}
for file in sorted((Path(__file__).parent / "prompts").glob("*.txt")):
    prompt = file.read_bytes().decode()
    prompt_ids = model.tokenize(prompt.encode(), add_bos=False, special=True)
    context = Context()
    row = context.logits(prompt_ids)
    first = row
    greedy, margins = [], []
    while True:
        second, best = np.argsort(row, kind="stable")[-2:]
        greedy.append(int(best))
        margins.append(round(float(row[best] - row[second]), 6))
        if len(greedy) == STEPS or best == model.token_eos():
            break
        row = context.logits([int(best)])
    golden[file.stem] = {
        "prompt": prompt,
        "prompt_ids": prompt_ids,
        "greedy": greedy,
        "margins": margins,
        "logits": {
            "ids": probe,
            "values": [round(float(first[i]), 6) for i in probe],
            "mean": round(float(first.mean()), 6),
            "top": [int(i) for i in np.argsort(first, kind="stable")[::-1][:2]],
        },
    }
    print(file.stem, len(greedy), "tokens, least margin", min(margins))

Path(out_path).write_text(json.dumps(golden, indent=None, ensure_ascii=False).replace('}}, "', '}},\n"') + "\n")
