"""Writes the blocks that tests/rare.rs reads: random ones of each format that candle cannot read, with their values.

    pip install gguf numpy
    python3 make_blocks.py

A file holds some blocks as GGUF has them, one after another, then the values of their weights as little-endian f32, as
the `gguf` package's own dequantizers give them. Where a format has a codebook, the blocks name all its points.
"""

from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

# Format: number of blocks, and the byte at which the f16 scale lies.
FORMATS = {
    "IQ4_NL": (16, 0),
    "IQ4_XS": (4, 0),
    "IQ3_S": (8, 0),
    "IQ3_XXS": (4, 0),
    "IQ2_S": (32, 0),
    "IQ2_XS": (16, 0),
    "IQ2_XXS": (8, 0),
    "IQ1_M": (4, None),
    "IQ1_S": (64, 0),
    "TQ1_0": (4, 52),
    "TQ2_0": (4, 64),
    "MXFP4": (16, None),
}

# Where the bits of point i's number lie in a block: first bit and how many, from the lowest bits of the number on.
POINTS = {
    "IQ3_S": lambda i: [(16 + 8 * i, 8), (528 + i, 1)],
    "IQ3_XXS": lambda i: [(16 + 8 * i, 8)],
    "IQ2_S": lambda i: [(16 + 8 * i, 8), (528 + 2 * i, 2)],
    "IQ2_XS": lambda i: [(16 + 16 * i, 9)],
    "IQ2_XXS": lambda i: [(16 + 64 * (i // 4) + 8 * (i % 4), 8)],
    "IQ1_S": lambda i: [(16 + 8 * i, 8), (272 + 16 * (i // 4) + 3 * (i % 4), 3)],
}


def name_all_points(blocks, places, points, per_block):
    """Puts the numbers of all points into blocks, in random order."""
    numbers = np.resize(random.permutation(points), (len(blocks), per_block))
    bits = np.unpackbits(blocks, axis=1, bitorder="little")
    for i in range(per_block):
        number = numbers[:, i]
        for first, count in places(i):
            for bit in range(count):
                bits[:, first + bit] = number & 1
                number = number >> 1
    return np.packbits(bits, axis=1, bitorder="little")


random = np.random.default_rng(20)
for name, (count, scale_at) in FORMATS.items():
    kind = GGMLQuantizationType[name]
    weights, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    if scale_at is not None:
        scales = random.normal(0, 0.05, (count, 1)).astype("<f2")
        blocks[:, scale_at : scale_at + 2] = scales.view(np.uint8)
    elif name == "MXFP4":
        # The exponents at both ends, where the arithmetic differs, and some between; the very largest overflow.
        blocks[:, 0] = np.append([0, 1, 2, 250], random.integers(3, 250, count - 4))
    elif name == "IQ1_M":
        scales = random.normal(0, 0.05, count).astype("<f2").view(np.uint16)
        for k in range(4):
            high = blocks[:, 49 + 2 * k]
            high[:] = high & 15 | (scales >> 4 * k & 15) << 4
    if name in POINTS:
        points, width = getattr(quants, name).grid_shape
        blocks = name_all_points(blocks, POINTS[name], points, weights // width)
    values = quants.dequantize(blocks, kind).astype("<f4")
    assert np.isfinite(values).all()
    (Path(__file__).parent / f"{name.lower()}.bin").write_bytes(blocks.tobytes() + values.tobytes())
    print(name, count, "blocks")
