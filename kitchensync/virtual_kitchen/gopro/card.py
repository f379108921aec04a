"""The files on the virtual GoPro's card and whether a client has fetched them."""

from __future__ import annotations

import hashlib
import re
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import av
import cv2

from kitchensync.virtual_kitchen.errors import BadReplay

FOLDER = "100GOPRO"
CAMERA_NAME = re.compile(r"G[XHLP][0-9]{6}\.MP4")
THUMBNAIL_WIDTH, SCREENNAIL_WIDTH = 160, 640
READ_BYTES = 1 << 20
WHOLE_READ_BYTES = 1 << 30  # larger files are not read into memory and get no header
PROXY_WIDTH, PROXY_HEIGHT = 320, 180
SMALL_WIDTH = 640  # width of this camera's own films, which are copied without encoding
PROXY_BOXES = {"brand": "mp41", "write_tmcd": "0"}


@dataclass(frozen=True)
class CardFile:
    """One finished video; created_local_s is the camera's local clock as if it were Unix time."""

    name: str
    path: Path
    size: int
    created_local_s: int
    hilights_ms: tuple[int, ...] = ()

    @cached_property
    def _picture(self) -> dict[str, int]:
        with av.open(str(self.path)) as container:
            stream = container.streams.video[0]
            seconds = int((stream.duration or 0) * (stream.time_base or 0))
            return {"w": stream.width, "h": stream.height, "dur": seconds}

    @cached_property
    def proxy(self) -> Path:
        """The small copy (LRV), made at the first request."""
        path = self.path.with_name("GL" + self.path.stem[2:] + ".LRV")
        write_proxy(self.path, path)
        return path

    @cached_property
    def telemetry(self) -> bytes:
        """Return all payloads of the gpmd track, concatenated."""
        with av.open(str(self.path)) as container:
            data_streams = [stream for stream in container.streams if stream.type == "data"]
            packets = (bytes(packet) for packet in (container.demux(data_streams) if data_streams else ()))
            return b"".join(data for data in packets if data[:4] == b"DEVC")

    def header(self) -> bytes:
        """Return the camera's own header (moov/udta/GPMF)."""
        data = self.path.read_bytes() if self.size < WHOLE_READ_BYTES else b""
        at = data.rfind(b"GPMFDEVC")
        return data[at + 4 : at - 4 + int.from_bytes(data[at - 4 : at], "big")] if at > 0 else b""

    def listed(self) -> dict[str, str]:
        """Return the file's entry of the media list: every value is text."""
        created = str(self.created_local_s)
        return {"n": self.name, "cre": created, "mod": created, "glrv": "0", "ls": "-1", "s": str(self.size)}

    def info(self) -> dict[str, Any]:
        """Return the reply of media/info: every value is text; the fps labels are swapped, as in cameras."""
        shape = {key: str(value) for key, value in self._picture.items()}
        gumi = hashlib.md5(self.name.encode(), usedforsecurity=False).hexdigest()
        return {
            "ct": "0", "cre": str(self.created_local_s), "s": str(self.size), "us": "0", "mos": [],
            "eis": "0", "pta": "0", "ao": "stereo", "tr": "0", "mp": "0", "gumi": gumi, "ls": "-1", "cl": "0",
            "avc_profile": "0", "profile": "0", "hc": str(len(self.hilights_ms)),
            "hi": [str(ms) for ms in self.hilights_ms], "subsample": "0", "progr": "1", "mahs": "0",
            "rot": "0", "fps": "1001", "fps_denom": "30000", **shape,
        }  # fmt: skip

    def still(self, width: int) -> bytes:
        """Return the first frame as a JPEG of a width."""
        with av.open(str(self.path)) as container:
            frame = next(container.decode(video=0))
            height = max(2, round(frame.height * width / frame.width))
            picture = frame.reformat(width=width, height=height, format="bgr24").to_ndarray()
        _, jpeg = cv2.imencode(".jpg", picture)
        return jpeg.tobytes()


def write_proxy(video: Path, target: Path) -> None:
    """Write the small copy of a video with the same timestamps, sound and telemetry.

    A video that is already small is not encoded again, because a real camera has its small copy immediately.
    """
    with av.open(str(video)) as source, av.open(str(target), "w", format="mp4", options=PROXY_BOXES) as out:
        pictures = source.streams.video[0]
        others = [*source.streams.audio[:1], *(stream for stream in source.streams if _is_telemetry(stream))]
        if pictures.width <= SMALL_WIDTH:
            _copy(source, out, [pictures, *others])
        else:
            _shrink(source, out, pictures, others)


def _is_telemetry(stream: Any) -> bool:
    return stream.type == "data" and stream.metadata.get("handler_name", "").strip().endswith("GoPro MET")


def _copy(source: Any, out: Any, streams: list[Any]) -> None:
    copies = {stream.index: out.add_stream_from_template(stream) for stream in streams}
    for packet in source.demux(streams):
        if packet.dts is not None:
            packet.stream = copies[packet.stream.index]
            out.mux(packet)


def _shrink(source: Any, out: Any, pictures: Any, others: list[Any]) -> None:
    small = out.add_stream(
        "libx264", rate=pictures.average_rate, options={"preset": "ultrafast", "crf": "30"}
    )
    small.width, small.height, small.pix_fmt = PROXY_WIDTH, PROXY_HEIGHT, "yuv420p"
    small.codec_context.time_base = small.time_base = pictures.time_base or Fraction(1, 90000)
    copies = {stream.index: out.add_stream_from_template(stream) for stream in others}
    for packet in source.demux([pictures, *others]):
        if packet.stream is pictures:
            for frame in packet.decode():
                out.mux(small.encode(frame.reformat(PROXY_WIDTH, PROXY_HEIGHT, "yuv420p")))
        elif packet.dts is not None:
            packet.stream = copies[packet.stream.index]
            out.mux(packet)
    out.mux(small.encode(None))


class Card:
    """Finished files by name. A file counts as fetched once its last byte was sent."""

    def __init__(self, path: Path) -> None:
        """Keep new files in a private folder."""
        self.path = path
        self._files: dict[str, CardFile] = {}
        self._fetched: set[str] = set()
        self._lock = threading.Lock()
        self._last_number = 0

    def next_path(self) -> Path:
        """Return the path of the next recording: GX, chapter 01, next file number."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._last_number += 1
        return self.path / f"GX01{self._last_number:04d}.MP4"

    def change(self) -> None:
        """Insert an empty card; the old card's files move to a folder whose name ends in `-taken-out`."""
        with self._lock:
            self.path.rename(self.path.with_name(f"{self.path.name}-taken-out"))
            self._files.clear()
            self._last_number = 0

    def add(self, file: CardFile) -> None:
        """List a finished file."""
        with self._lock:
            self._files[file.name] = file

    def files(self) -> list[CardFile]:
        """Return the files in the order they were made."""
        with self._lock:
            return list(self._files.values())

    def find(self, name: str) -> CardFile | None:
        """Return a file, by name with or without its folder."""
        folder, _, base = name.lstrip("/").rpartition("/")
        with self._lock:
            return self._files.get(base) if folder in ("", FOLDER) else None

    def delete(self, file: CardFile) -> None:
        """Remove a file from the card; erase it unless it is a replayed file from elsewhere."""
        with self._lock:
            self._files.pop(file.name, None)
        if file.path.parent == self.path:
            file.path.unlink(missing_ok=True)

    def mark(self, file: CardFile, ms: int) -> None:
        """Add a hilight to a finished file."""
        self._replace(file, tuple(sorted({*file.hilights_ms, ms})))

    def unmark(self, file: CardFile, ms: int) -> bool:
        """Remove a hilight; return False if there is none at that time."""
        if ms not in file.hilights_ms:
            return False
        self._replace(file, tuple(mark for mark in file.hilights_ms if mark != ms))
        return True

    def _replace(self, file: CardFile, hilights_ms: tuple[int, ...]) -> None:
        with self._lock:
            self._files[file.name] = replace(file, hilights_ms=hilights_ms)

    def mark_fetched(self, file: CardFile) -> None:
        """Note that a file was sent to its end."""
        with self._lock:
            self._fetched.add(file.name)

    def all_fetched(self) -> bool:
        """Return whether every listed file was fetched."""
        with self._lock:
            return set(self._files) <= self._fetched


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def replayed_file(path: Path, created_local_s: int) -> CardFile:
    """Return a real file as the card lists it, with its own name if that is a camera's file name."""
    name = path.name if CAMERA_NAME.fullmatch(path.name) else "GX010001.MP4"
    try:
        return CardFile(name, path, path.stat().st_size, created_local_s)
    except OSError as error:
        raise BadReplay(f"{path}: cannot be read ({error.strerror})") from error
