"""Prints or writes the perplexity of two texts, prose.txt and our licence, under a llama-architecture GGUF, by plain arithmetic: weights dequantized to
f32 by the gguf package, activations never quantized, one matrix product after another in numpy. What a backend that
quantizes activations gives can then be held against what it approximates.

    pip install gguf numpy llama-cpp-python      (the last only turns the text into token ids)
    python3 make_perplexity.py MODEL.gguf [OUT.json]
"""

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from llama_cpp import Llama

here = Path(__file__).resolve().parent
# Long enough that chance moves the result by less than what is tested: quantized activations move the logarithm of a
# token's probability by some 0.08 either way, which over 2,900 tokens comes to 0.15 %.
text = (here / "prose.txt").read_text() + (here.parents[3] / "LICENSE-APACHE").read_text()
tokens = Llama(sys.argv[1], vocab_only=True, verbose=False).tokenize(text.encode(), add_bos=False)
reader = gguf.GGUFReader(sys.argv[1])
field = lambda name: reader.fields["llama." + name].contents()
tensors = {tensor.name: tensor for tensor in reader.tensors}


def weight(name):
    tensor = tensors[name + ".weight"]
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)


def norm(x, name):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight(name)


def turn(x):  # interleaved pairs, as GGUF lays them out for this architecture
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = np.empty_like(x)
    turned[..., 0::2], turned[..., 1::2] = even * cos - odd * sin, even * sin + odd * cos
    return turned


heads, kv_heads = field("attention.head_count"), field("attention.head_count_kv")
eps = field("attention.layer_norm_rms_epsilon")
count = len(tokens)
x = weight("token_embd")[tokens]
head = x.shape[1] // heads
angles = np.arange(count)[:, None] * field("rope.freq_base") ** (-np.arange(0, head, 2) / head)[None, :]
cos, sin = (f(angles)[None].astype(np.float32) for f in (np.cos, np.sin))
mask = np.triu(np.full((count, count), -np.inf, np.float32), 1)
for layer in range(field("block_count")):
    part = lambda name: f"blk.{layer}.{name}"
    y = norm(x, part("attn_norm"))
    split = lambda name, n: (y @ weight(part(name)).T).reshape(count, n, head).transpose(1, 0, 2)
    query, key, value = turn(split("attn_q", heads)), turn(split("attn_k", kv_heads)), split("attn_v", kv_heads)
    key, value = (np.repeat(each, heads // kv_heads, axis=0) for each in (key, value))
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(head) + mask
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    y = (scores / scores.sum(-1, keepdims=True)) @ value
    x = x + y.transpose(1, 0, 2).reshape(count, -1) @ weight(part("attn_output")).T
    y = norm(x, part("ffn_norm"))
    gate = y @ weight(part("ffn_gate")).T
    x = x + (gate / (1 + np.exp(-gate)) * (y @ weight(part("ffn_up")).T)) @ weight(part("ffn_down")).T
logits = norm(x, "output_norm") @ weight("output" if "output.weight" in tensors else "token_embd").T
logits = logits.astype(np.float64)
peak = logits.max(-1)
log_sum = peak + np.log(np.exp(logits - peak[:, None]).sum(-1))
losses = log_sum[:-1] - logits[np.arange(count - 1), tokens[1:]]
perplexity = float(np.exp(losses.mean()))
print(f"{count} tokens, perplexity {perplexity:.5f}")
if len(sys.argv) > 2:
    Path(sys.argv[2]).write_text(json.dumps({"tokens": tokens, "perplexity": perplexity}) + "\n")
