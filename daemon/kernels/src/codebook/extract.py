"""Writes the codebooks beside this file, as the `gguf` package states them.

    pip install gguf numpy
    python3 extract.py

A codebook is a file of little-endian u16, one for each point in the order of its number in a block. A point of eight
weights takes two bits for each, one of four takes four, the first weight in the lowest bits. These are indices into
the few values a weight can have, which codebook.rs names; this script checks that they are the package's.
"""

from pathlib import Path

import numpy as np
from gguf import quants

TWO_BITS = [8, 25, 43]
CODEBOOKS = {
    "iq1_s": (quants.IQ1_S, [-1, 0, 1]),
    "iq2_xxs": (quants.IQ2_XXS, TWO_BITS),
    "iq2_xs": (quants.IQ2_XS, TWO_BITS),
    "iq2_s": (quants.IQ2_S, TWO_BITS),
    "iq3_xxs": (quants.IQ3_XXS, [4, 12, 20, 28, 36, 44, 52, 62]),
    "iq3_s": (quants.IQ3_S, [1, 3, 5, 7, 9, 11, 13, 15]),
}

for name, (source, values) in CODEBOOKS.items():
    source.init_grid()
    points = source.grid.reshape(source.grid_shape).astype(int)
    indices = np.array([[values.index(value) for value in point] for point in points])
    bits = 16 // indices.shape[1]
    packed = (indices << bits * np.arange(indices.shape[1])).sum(axis=1).astype("<u2")
    (Path(__file__).parent / f"{name}.bin").write_bytes(packed.tobytes())
    print(name, len(points), "points of", indices.shape[1])

# codebook.rs computes this table instead of keeping it.
for number, signs in enumerate(quants.IQ2_XXS.ksigns):
    assert signs == number | number.bit_count() % 2 << 7, "an eighth sign that does not make the number of them even"
