"""The random numbers of runtime/random.h and the data order of runtime/batches.c, written a second time.

Philox4x32-10 (Salmon et al., SC 2011) keyed by (seed, op id, micro-step, element index). Everything here is integer
arithmetic on numpy arrays, so that it is exact. `python philox.py` checks it against the published test vectors.
"""

import numpy as np

INITIAL_STREAM = 0xFFFFFFFF
MASK32 = np.uint64(0xFFFFFFFF)
MASK64 = (1 << 64) - 1


def philox(key0, key1, counter):
    """Ten rounds; key0, key1 and the four counters are uint64 arrays that hold 32-bit words."""
    c0, c1, c2, c3 = (np.asarray(c, np.uint64) for c in counter)
    key0, key1 = np.asarray(key0, np.uint64), np.asarray(key1, np.uint64)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> np.uint64(32)) ^ c1 ^ key0, p1 & MASK32, (p0 >> np.uint64(32)) ^ c3 ^ key1, p0 & MASK32
        key0, key1 = (key0 + np.uint64(0x9E3779B9)) & MASK32, (key1 + np.uint64(0xBB67AE85)) & MASK32
    return c0, c1, c2, c3


def random_words(seed, op_id, micro_step, index):
    """The four words of the elements `index` (an array of integers below 2^32)."""
    index = np.asarray(index, np.uint64)
    key0, key1 = (seed & 0xFFFFFFFF) ^ (micro_step >> 32), seed >> 32
    counter = (index, np.uint64(micro_step & 0xFFFFFFFF), np.uint64(op_id & 0xFFFFFFFF), np.uint64(op_id >> 32))
    return philox(key0, key1, counter)


def uniform(seed, op_id, micro_step, index):
    """[0, 1), the top 24 bits of the first word."""
    return (random_words(seed, op_id, micro_step, index)[0] >> np.uint64(8)).astype(np.float64) * 2.0**-24


def uniform_integer(seed, op_id, micro_step, index, bound):
    words = random_words(seed, op_id, micro_step, index)
    return (((words[0] << np.uint64(32)) | words[1]) % np.uint64(bound)).astype(np.int64)


def normal(seed, op_id, micro_step, index):
    """Box-Muller on two 53-bit numbers."""
    words = random_words(seed, op_id, micro_step, index)
    first = ((words[0] << np.uint64(32)) | words[1]) >> np.uint64(11)
    second = ((words[2] << np.uint64(32)) | words[3]) >> np.uint64(11)
    u = (first.astype(np.float64) + 1) * 2.0**-53
    v = second.astype(np.float64) * 2.0**-53
    return np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)


def fnv1a(data, value=0xCBF29CE484222325):
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK64
    return value


def hash_name(name):
    """Op id of a parameter or of a purpose: FNV-1a, then the finaliser of splitmix64."""
    value = fnv1a(name.encode())
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK64
    return value ^ (value >> 31)


def operator_id(module_path, ordinal):
    """Op id of the ordinal-th random operator built at a module path."""
    return fnv1a(ordinal.to_bytes(8, "little"), fnv1a(module_path.encode()))


def window_starts(seed, epoch, samples, elements, window):
    """First element of the windows that a text reader serves as the samples of an epoch (shuffled)."""
    return uniform_integer(seed, hash_name("reprise.windows"), epoch, samples, elements - window)


def check():
    """kat_vectors of the Random123 library."""
    known = [((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
             ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
             ((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
              (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))]
    for key, counter, expected in known:
        assert tuple(int(w) for w in philox(*key, counter)) == expected


if __name__ == "__main__":
    check()
    print("philox: the published vectors hold")
