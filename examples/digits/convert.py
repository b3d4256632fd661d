"""Writes images.idx.gz and labels.idx.gz from scikit-learn's copy of the UCI optical digits.

    pip download --no-deps scikit-learn && unzip scikit_learn-*.whl sklearn/datasets/data/digits.csv.gz
    python convert.py sklearn/datasets/data/digits.csv.gz

Each line of the CSV is 64 pixels (0 … 16) and the digit. Needs the standard library only.
"""

import gzip
import random
import struct
import sys


def write_idx(path, dims, values):
    """IDX: 00 00, type 08 (u8), number of axes, their sizes (big-endian u32), then the elements."""
    header = struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims)
    with open(path, "wb") as file:
        file.write(gzip.compress(header + bytes(values), 9, mtime=0))


def main():
    with gzip.open(sys.argv[1], "rt") as file:
        records = [[int(float(v)) for v in line.split(",")] for line in file]
    random.Random(0).shuffle(records)
    write_idx("images.idx.gz", [len(records), 8, 8], [pixel for record in records for pixel in record[:64]])
    write_idx("labels.idx.gz", [len(records)], [record[64] for record in records])


if __name__ == "__main__":
    main()
