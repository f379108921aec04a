"""Read a recording in workers, outside pytest: `python forked_readers.py RECORDING fork|spawn PARENT`.

With `reads-first` as PARENT this process itself reads before it starts workers. It prints how many streams there are,
and whether all workers read the same values as it.
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


def main(path: str, method: str, parent: str) -> None:
    rec = ks.open(path)
    names = [name for name in STREAMS if name in rec.streams or name in rec.attributes]
    tasks: list[Any] = [(of_stream, (rec[name], number)) for name in names for number in (5, 9, 7, 8)]
    instants = rec.instants(10, *rec.overlap, read=READ)
    tasks += [(of_instant, (instants, number)) for number in range(0, 40, 5)]
    if parent == "reads-first":
        for read, (source, number) in tasks:
            read(source, number + 1)
    SHARED.extend(tasks)
    with multiprocessing.get_context(method).Pool(2) as pool:
        if method == "fork":  # with the open files of the parent, like the workers of a data loader
            from_workers = pool.map(shared, range(len(tasks)), chunksize=1)
        else:
            from_workers = [pool.apply(read, args) for read, args in tasks]
    own = [read(*args) for read, args in tasks]
    print(len(names), from_workers == own)


SHARED: list[Any] = []


def shared(number: int) -> str:
    read, args = SHARED[number]
    return str(read(*args))


if __name__ == "__main__":
    main(*sys.argv[1:])
