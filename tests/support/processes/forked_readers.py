"""Reads of a recording in workers, apart from pytest: `python forked_readers.py RECORDING fork|spawn LOOKED`.

With `looked` this process reads something itself first. It prints whether all workers read what it reads.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sys
from typing import Any

import numpy as np

import kitchensync as ks

STREAMS = ("pv", "vlc_leftfront", "gopro", "gopro/audio", "gyroscope", "head", "depth")
READ = ["pv", "gopro", "gyroscope"]


def of_stream(stream: Any, number: int) -> str:
    value = np.ascontiguousarray(stream[number])
    return hashlib.sha256(value.tobytes()).hexdigest()


def of_instant(instants: Any, number: int) -> str:
    values = instants[number]
    return hashlib.sha256(b"".join(np.ascontiguousarray(values[name]).tobytes() for name in READ)).hexdigest()


def main(path: str, method: str, looked: str) -> None:
    rec = ks.open(path)
    there = [name for name in STREAMS if name in rec.streams or name in rec.attributes]
    tasks: list[Any] = [(of_stream, (rec[name], number)) for name in there for number in (5, 9, 7, 8)]
    instants = rec.instants(10, *rec.overlap, read=READ)
    tasks += [(of_instant, (instants, number)) for number in range(0, 40, 5)]
    if looked == "looked":
        for read, (source, number) in tasks:
            read(source, number + 1)
    SHARED.extend(tasks)
    with multiprocessing.get_context(method).Pool(2) as pool:
        if method == "fork":  # with what the parent holds open, as the workers of a data loader get it
            found = pool.map(shared, range(len(tasks)), chunksize=1)
        else:
            found = [pool.apply(read, given) for read, given in tasks]
    own = [read(*given) for read, given in tasks]
    print(len(there), found == own)


SHARED: list[Any] = []


def shared(number: int) -> str:
    read, given = SHARED[number]
    return str(read(*given))


if __name__ == "__main__":
    main(*sys.argv[1:])
