"""Writes rope-scaling.json: frequencies and attention factors as transformers computes them, by its own code. That code asks
torch for a handful of functions, which numpy has too, so that torch need not be installed.

    pip download --no-deps transformers==4.57.1 && unzip transformers-*.whl transformers/modeling_rope_utils.py
    python make_rope.py transformers/modeling_rope_utils.py > rope-scaling.json
"""
import json, math, sys, types
import numpy as np

class Array(np.ndarray):
    def to(self, device=None, dtype=None): return self.astype(dtype) if dtype else self

torch = types.SimpleNamespace(
    float=np.float32, float32=np.float32, int64=np.int64, Tensor=Array,
    arange=lambda *a, dtype=np.int64: np.arange(*a).astype(dtype).view(Array),
    clamp=lambda x, low, high: np.clip(x, low, high).view(Array))
source = open(sys.argv[1]).read()
names = "_compute_default_rope_parameters _compute_linear_scaling_rope_parameters _compute_yarn_parameters".split()
space = {"torch": torch, "math": math, "Optional": __import__("typing").Optional, "PretrainedConfig": object}
for name in names:
    start = source.index(f"def {name}(")
    exec(source[start:source.index("\n\n\n", start)], space)

cases = []
for kind, base, dim, factor, original, fast, slow in [
    ("linear", 100000.0, 64, 8.0, 8192, 32, 1), ("linear", 1e6, 256, 8.0, 131072, 32, 1), ("linear", 10000.0, 8, 2.5, 2048, 32, 1),
    ("yarn", 1e6, 128, 4.0, 32768, 32, 1), ("yarn", 10000.0, 128, 16.0, 4096, 32, 1), ("yarn", 100000.0, 64, 8.0, 8192, 32, 1),
    ("yarn", 150000.0, 64, 32.0, 4096, 64, 2), ("yarn", 10000.0, 8, 40.0, 512, 8, 1), ("yarn", 500000.0, 16, 1.25, 262144, 32, 1)]:
    scaling = {"factor": factor, "original_max_position_embeddings": original, "beta_fast": fast, "beta_slow": slow}
    config = types.SimpleNamespace(rope_theta=base, head_dim=dim, hidden_size=dim, num_attention_heads=1,
                                   max_position_embeddings=99, rope_scaling=scaling)
    f = space["_compute_yarn_parameters" if kind == "yarn" else "_compute_linear_scaling_rope_parameters"]
    frequencies, magnitude = f(config, None)
    cases.append(dict(kind=kind, base=base, head_dim=dim, factor=factor, original_context=original, beta_fast=fast,
                      beta_slow=slow, frequencies=[float(x) for x in frequencies], magnitude=float(magnitude)))
print(json.dumps(cases, indent=1))
