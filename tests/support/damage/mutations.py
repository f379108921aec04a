"""Wrong inputs made of right ones: bytes flipped, cut, moved and repeated; values that are none of theirs."""

from __future__ import annotations

import copy
import json
import random
import struct
from collections.abc import Iterator
from typing import Any

MOST_BYTES = 1 << 20
NUMBERS = (0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 65535, 65536, 2**24 - 1, 2**31 - 1, 2**31, 2**32 - 1)
PIECES = (
    b"", b"\0", b"\xff", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b'"', b"\\", b"'", b"\n", b"\r\n", b"[", b"{",
    b"]", b"}", b"(", b"<", b">", b"&", b"%s", b"..", b"/", b",", b";", b":", b"=", b"@", b"#", b"-", b"0",
    b"9" * 30, b"1e999", b"NaN", b"-Infinity", b"null", b"true", b"\\ud800", b"\xe2\x80\xae", b"\xf0\x9f\x8d\xb3",
    "\u0661\u00b2\u2167".encode(),
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.5, -0.0, 1e308, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**24, "", " ", "0",
    "-1", "1e9", "\0", "\ud800", "\u202e", "a" * 5000, "../../x", "\u0661", "\u00b2", [], {}, [[]], {"": None},
    [None], [0], ["a"], {"a": {}}, [1, [2, [3, [4]]]],
)  # fmt: skip


def mutated(content: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """Change bits, lengths, places, or nothing; `other` is a right input to take pieces from."""
    data = bytearray(content)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 4, 8, 16))):
        _change(data, rng, other)
    return bytes(data[:MOST_BYTES])


def _change(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    end = min(len(data), at + rng.choice((1, 1, 2, 4, 8, 32, 500)))
    kind = rng.randrange(10)
    if kind == 0 and data:
        data[at - 1] ^= 1 << rng.randrange(8)
    elif kind == 1 and rng.random() < 0.3:
        del data[at:]
    elif kind == 2:
        data[at:at] = rng.randbytes(rng.randrange(40))
    elif kind == 3:
        data[at:end] = rng.choice(PIECES)
    elif kind == 4:
        data[at:end] = b""
    elif kind == 5:
        data[at:at] = data[at:end] * rng.choice((1, 1, 2, 30))
    elif kind == 6:
        form = rng.choice(("<I", ">I", "<H", ">H", "<Q", ">Q", "B"))
        number = rng.choice((*NUMBERS, len(data), rng.randrange(2**32)))
        packed = struct.pack(form, number & ((1 << 8 * struct.calcsize(form)) - 1))
        data[at : at + len(packed)] = packed
    elif kind == 7 and other:
        start = rng.randrange(len(other))
        data[at:end] = other[start : start + rng.choice((1, 4, 30, 500))]
    elif kind == 8 and rng.random() < 0.1:
        data[at:at] = rng.choice(PIECES) * rng.choice((100, 1000, 20_000))
    elif kind == 9:
        data[at:end] = bytes(reversed(data[at:end]))


def mutated_json(content: bytes, rng: random.Random) -> bytes:
    """Put other values at some places of a document, take some out, name others otherwise."""
    changed = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        places = list(_places(changed))
        if not places:
            break
        holder, key = rng.choice(places)
        _change_value(holder, key, places, rng)
    text = json.dumps(changed, ensure_ascii=rng.random() < 0.5)
    return text.encode("utf-8", "surrogatepass")[:MOST_BYTES]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _change_value(holder: Any, key: Any, places: list[tuple[Any, Any]], rng: random.Random) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(("", "x", "schema", "\ud800", str(rng.random())))] = holder.pop(key)
    elif kind == 2 and isinstance(holder, list):
        holder += [copy.deepcopy(holder[key])] * rng.choice((1, 2, 200))
    elif kind == 3:
        other, place = rng.choice(places)
        if place in other if isinstance(other, dict) else place < len(other):
            holder[key] = copy.deepcopy(other[place])
    elif kind == 4 and isinstance(holder[key], str):
        holder[key] = mutated(holder[key].encode("utf-8", "replace"), rng).decode("utf-8", "replace")
    elif kind == 5 and type(holder[key]) in (int, float):
        holder[key] = rng.choice((holder[key] + 1, -holder[key], holder[key] * 1000, 2**53 + 1, 1e-300))
    else:
        holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
