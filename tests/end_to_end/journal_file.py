"""Journals as docs/journal.md describes them, read and written by nothing of fgsync."""
import ctypes
import struct

HEADER_BYTES, SALT = 64, slice(32, 48)
BEGIN, CHUNKS, DONE = 1, 2, 3


class _Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


_xxhash = ctypes.CDLL("libxxhash.so.0")
_xxhash.XXH3_128bits.restype = _Hash
_xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def checksum(data):
    value = _xxhash.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", value.high, value.low)


def sealed(salt, offset, body):
    record = struct.pack("<I", len(body)) + body
    return record + checksum(salt + struct.pack("<Q", offset) + record)


def bodies_of(journal):
    """The bodies of a whole journal's records; fails at a checksum that does not fit."""
    assert checksum(journal[:48]) == journal[48:HEADER_BYTES]
    offset = HEADER_BYTES
    while offset < len(journal):
        length, = struct.unpack_from("<I", journal, offset)
        body = journal[offset + 4:offset + 4 + length]
        record = sealed(journal[SALT], offset, body)
        assert record == journal[offset:offset + len(record)], f"the record at {offset}"
        yield body
        offset += len(record)


def put_settled_files_first(path, count):
    """Lets the journal begin with `count` files that came and were published, before what it says already."""
    with open(path, "rb") as file:
        journal = file.read()
    bodies = list(bodies_of(journal))
    begin = next(body for body in bodies if body[0] == BEGIN)
    version = begin[9:-5]  # a path of five bytes is the last
    with open(path, "wb") as file:
        file.write(journal[:HEADER_BYTES])

        def put(body):
            file.write(sealed(journal[SALT], file.tell(), body))

        for number in range(count):
            name = struct.pack("<Q", 10_000 + number)
            put(bytes([BEGIN]) + name + version + f"{number:05x}".encode())
            put(bytes([CHUNKS]) + name + struct.pack("<QI", 0, 1) + bytes(16))
            put(bytes([DONE]) + name)
        for body in bodies:
            put(body)
