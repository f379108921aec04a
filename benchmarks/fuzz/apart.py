"""What is read in a process apart: sealed chunks, pictures, videos, uploads of texts.

The process apart serves one input after another here; in the app it ends after each. A file that ends it, or takes
more memory or time than it is given, is refused in words by whoever asked.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import cv2
import numpy as np
from media import small_film, written
from registry import OPENED, parser
from small_recordings import seal_stream

from kitchensync.recipe_app.cooking import recipe_pictures
from kitchensync.recipe_app.exchange import adopt
from kitchensync.recipe_app.web.door import strings_apart
from kitchensync.shell.process_apart import Bounds, ProcessApart, ReaderFailed
from kitchensync.storage.chunks.apart import ReaderApart
from kitchensync.storage.errors import BadChunk
from kitchensync.storage.reading.device_constants import ConstantTable, read_calibration, write_calibration


@functools.cache
def _reader() -> ReaderApart:
    return OPENED.enter_context(ReaderApart())


_apart: dict[str, ProcessApart] = {}


def _ask(module: Any, name: str, bounds: Bounds, content: bytes, file: str, *more: Any) -> Any:
    function = f"{module.__name__}:{name}"
    if function not in _apart:
        _apart[function] = OPENED.enter_context(ProcessApart(function, bounds))
    return _apart[function].ask(os.fspath(written(content, file)), *more).value


def _chunks() -> list[bytes]:
    folder = written(b"", "x").parent / "seed"
    rng = np.random.default_rng(1)
    seal_stream(folder, "hololens/pv", [(10**9 + n, rng.bytes(200 + n)) for n in range(20)])
    seal_stream(folder, "hololens/gyroscope", [(10**9 + n, rng.bytes(352)) for n in range(20)])
    return [path.read_bytes() for path in sorted(folder.rglob("*.h5"))]


@parser("sealed chunks (HDF5)", seeds=_chunks, apart=True)
def chunk(content: bytes) -> None:
    _reader().look(written(content, "000000.h5"))


def _constants() -> list[bytes]:
    path = written(b"", "constants.h5")
    path.unlink()
    tables = [ConstantTable("intrinsics", np.eye(4, dtype=np.float32), "px", "a", "b")]
    write_calibration(path, [*tables, ConstantTable("list", "a device", "", "", "c")], {"stream": "pv"})
    return [path.read_bytes()]


@parser("constants of a sensor as stored (HDF5)", BadChunk, seeds=_constants, apart=True)
def stored_constants(content: bytes) -> None:
    read_calibration(written(content, "constants.h5"))


def _pictures() -> list[bytes]:
    image = np.arange(48 * 64 * 3, dtype=np.uint8).reshape(48, 64, 3)
    return [cv2.imencode(end, image)[1].tobytes() for end in (".png", ".jpg", ".webp", ".bmp")]


@parser("pictures of a recipe", ReaderFailed, seeds=_pictures, apart=True)
def recipe_picture(content: bytes) -> None:
    _ask(recipe_pictures, "tell_small", recipe_pictures.PICTURE, content, "in.png")


def _film() -> list[bytes]:
    return [small_film()]


@parser("videos that are adopted", ReaderFailed, seeds=_film, apart=True)
def adopted_video(content: bytes) -> None:
    _ask(adopt, "tell_facts", adopt.LOOK, content, "in.MP4")


@parser(
    "uploads of many texts",
    ReaderFailed,
    seeds=lambda: [b'{"a/b.json": "{}", "c": {"d": "\\u00e4", "e": ""}}'],
    apart=True,
)
def upload_of_texts(content: bytes) -> None:
    _ask(strings_apart, "tell_strings", strings_apart.BOUNDS, content, "upload")
