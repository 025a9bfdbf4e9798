#!/usr/bin/env python3
"""Makes tests/data/quant/<format>.bin: encoded blocks and the values the Python package `gguf` decodes them to.

Layout of a file: N blocks, then N * block_size little-endian f32. N follows from the size of the file.
NaNs are written as 0x7fc00000 (their payload is not part of any format).

Run:  pip install numpy gguf==0.19.0 ; python tools/make_quant_fixtures.py
"""
import pathlib

import gguf
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "quant"

# f16 bit patterns a scale may hold in a hostile or odd file.
EDGE_F16 = np.array(
    [
        0x0000, 0x8000,  # zeros
        0x0001, 0x8001, 0x03FF, 0x83FF,  # smallest and largest subnormals
        0x0400, 0x8400, 0x3C00, 0xBC00,  # smallest normal, one
        0x7BFF, 0xFBFF,  # largest finite
        0x7C00, 0xFC00, 0x7E00, 0xFE00,  # infinities, NaNs
        0x2E66, 0x1234, 0xA5A5, 0x5555,  # ordinary ones
    ],
    dtype=np.uint16,
)

# format -> byte offsets of its f16 fields
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def blocks_of(name, rng):
    qtype = gguf.GGMLQuantizationType[name]
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[qtype]
    fields = SCALES[name]
    n_edge = 256 if name == "MXFP4" else len(EDGE_F16)
    n_random = 12 if block_size == 256 else 40
    blocks = rng.integers(0, 256, size=(n_edge + n_random + 4, block_bytes), dtype=np.uint8)
    for i in range(len(blocks)):
        edge = i < n_edge
        for j, at in enumerate(fields):
            # the second field walks the list at another pace, so that edges meet each other
            bits = EDGE_F16[(i * (1 + 2 * j) + 5 * j) % len(EDGE_F16)] if edge else np.float16(rng.normal(0, 0.05)).view(np.uint16)
            blocks[i, at : at + 2] = np.frombuffer(np.uint16(bits).tobytes(), np.uint8)
        if name == "MXFP4" and edge:
            blocks[i, 0] = i  # every scale byte
    payload = [b for b in range(block_bytes) if all(b not in (f, f + 1) for f in fields)]
    last = len(blocks) - 4  # patterns: all codes 0, all ones, rising, falling
    for k, pattern in enumerate([lambda p: 0, lambda p: 255, lambda p: (p * 17) % 256, lambda p: 255 - p % 256]):
        for p, b in enumerate(payload):
            blocks[last + k, b] = pattern(p)
    return blocks, qtype


def write(name, blocks, values):
    values = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
    bits = values.view("<u4").copy()
    bits[np.isnan(values)] = 0x7FC00000
    path = OUT / f"{name.lower()}.bin"
    path.write_bytes(blocks.tobytes() + bits.tobytes())
    print(f"{path.name}: {blocks.shape[0]} blocks, {path.stat().st_size} bytes")


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(SCALES):
        blocks, qtype = blocks_of(name, np.random.default_rng(1000 + seed))
        with np.errstate(all="ignore"):
            write(name, blocks, gguf.quants.dequantize(blocks, qtype))
    # Every 23rd bit pattern and the edges, for the two 16-bit floats.
    halves = np.concatenate([EDGE_F16, np.array([0x7C01, 0xFC01, 0x7FFF, 0x7F80, 0xFF80, 0x7FC0, 0x0080, 0x007F], np.uint16),
                             np.arange(0, 65536, 23, dtype=np.uint16)]).reshape(-1, 1)
    for name in ("F16", "BF16"):
        raw = halves.view(np.uint8)
        with np.errstate(all="ignore"):
            write(name, raw, gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[name]))


if __name__ == "__main__":
    main()
