#!/usr/bin/env python3
"""Makes tests/data/gguf/ with the Python package `gguf` (pip install gguf numpy), so that minfer's reader and writer
are held against an implementation that is not its own. src/gguf/fixture_test.cpp knows the values below.

  every_type.gguf      each value type, tensors of 1 to 4 dimensions in plain and block types
  every_type_v2.gguf   the same bytes with version 2
  align_128.gguf       general.alignment 128
  split-*.gguf         five tensors in three parts
  big_endian.gguf      byte-swapped
"""
import pathlib
import sys

import gguf
import numpy as np

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/data/gguf")


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def ramp(dtype, *shape):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def every_type(path, endianess=gguf.GGUFEndian.LITTLE):
    w = gguf.GGUFWriter(path, "llama", endianess=endianess)
    w.add_uint8("t.u8", 200)
    w.add_int8("t.i8", -100)
    w.add_uint16("t.u16", 60000)
    w.add_int16("t.i16", -30000)
    w.add_uint32("t.u32", 4_000_000_000)
    w.add_int32("t.i32", -2_000_000_000)
    w.add_uint64("t.u64", 2**63 + 5)
    w.add_key_value("t.i64", -(2**62), gguf.GGUFValueType.INT64)
    w.add_float32("t.f32", 0.1)
    w.add_float64("t.f64", 0.1)
    w.add_bool("t.true", True)
    w.add_bool("t.false", False)
    w.add_string("t.string", "h\u00e9llo\nworld")
    w.add_string("t.odd_offset", "abc")
    w.add_array("t.ints", [1, -2, 3])
    w.add_array("t.floats", [0.5, -1.25])
    w.add_array("t.bools", [True, False, True])
    w.add_array("t.strings", ["a", "", "\u00e7\u00e9", "long " * 20])
    w.add_tensor("one_dim", ramp(np.float16, 7))
    w.add_tensor("two_dims", ramp(np.float32, 3, 5))
    w.add_tensor("four_dims", ramp(np.float32, 2, 3, 4, 5))
    w.add_tensor("bytes", ramp(np.int8, 2, 6))
    blocks = (ramp(np.int64, 2, 2 * 34) * 7 % 251).astype(np.uint8)  # two rows of 64 values
    w.add_tensor("blocks", blocks, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    finish(w)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    every_type(OUT / "every_type.gguf")
    data = bytearray((OUT / "every_type.gguf").read_bytes())
    data[4] = 2
    (OUT / "every_type_v2.gguf").write_bytes(data)
    every_type(OUT / "big_endian.gguf", gguf.GGUFEndian.BIG)

    w = gguf.GGUFWriter(OUT / "align_128.gguf", "llama")
    w.add_custom_alignment(128)
    w.add_tensor("a", ramp(np.float32, 3))
    w.add_tensor("b", ramp(np.float32, 2, 40))
    finish(w)

    w = gguf.GGUFWriter(OUT / "split.gguf", "llama", split_max_tensors=2)
    w.add_string("t.string", "in the first part")
    for i in range(5):
        w.add_tensor(f"blk.{i}.w", ramp(np.float32, 2, 4) + 100 * i)
    finish(w)


main()
