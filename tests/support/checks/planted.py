"""Signs of a person that survive decoding, and a search for them in anything: pictures, spectra, numbers, bytes.

The search shares no code with the project: it looks with PyAV, OpenCV, NumPy, h5py and zipfile into what it is given.
"""

from __future__ import annotations

import base64
import io
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import av
import cv2
import h5py
import numpy as np
from made_videos import video_units

GRID, CELL = (6, 8), 16
"""Rows and columns of the coded picture, and pixels of a cell."""
SOUND_HZ, BLOCK = 48_000, 8192
CODED = 48
FEWEST = 24
"""So many coded numbers are no chance."""
PICTURE, TONE, MOTION = "picture", "tone", "motion"


@dataclass(frozen=True)
class Planted:
    """One person's signs: a pattern of dark and bright, a tone, a walk of the gyroscope."""

    seed: int
    tone_hz: int

    @cached_property
    def cells(self) -> np.ndarray:
        """The pattern, +1 and -1, as many of each."""
        flat = np.repeat([-1.0, 1.0], GRID[0] * GRID[1] // 2)
        return np.random.default_rng(self.seed).permutation(flat).reshape(GRID)

    def picture(self, rng: np.random.Generator) -> np.ndarray:
        """Return an RGB picture with the pattern under noise."""
        luma = np.kron(128 + 60 * self.cells, np.ones((CELL, CELL)))
        noisy = luma + rng.normal(0, 12, luma.shape)
        return np.repeat(noisy.clip(0, 255).astype(np.uint8)[..., None], 3, axis=2)

    def sound(self, first: int, count: int) -> np.ndarray:
        """Return samples of the tone, -0.4 to 0.4."""
        return 0.4 * np.sin(2 * np.pi * self.tone_hz * np.arange(first, first + count) / SOUND_HZ)

    @cached_property
    def motion(self) -> np.ndarray:
        """Angular rates that nobody else's head has, rad/s."""
        return np.random.default_rng(1000 + self.seed).uniform(0.5, 2.0, CODED).astype(np.float32)

    def wave(self, seconds: float) -> bytes:
        """Return a voice note: a WAV file of the tone."""
        samples = (32767 * self.sound(0, round(seconds * SOUND_HZ))).astype("<i2").tobytes()
        head = struct.pack(
            "<4sI4s4sIHHIIHH", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, SOUND_HZ, 96_000, 2, 16
        )
        return head + b"data" + struct.pack("<I", len(samples)) + samples

    def gyroscope(self, packet: int) -> bytes:
        """Return the payload of a gyroscope packet: 8 samples of 32 bytes, x coded."""
        rates = self.motion[np.arange(8 * packet, 8 * packet + 8) % CODED]
        return b"".join(struct.pack("<QQ3ff", 1, 2, float(x), 0.0, 0.0, 0.0) for x in rates)

    def block(self, number: int, count: int) -> bytes:
        """Return the payload of a microphone's packet: samples of 16 bits."""
        return (32767 * self.sound(number * count, count)).astype("<i2").tobytes()

    def signs_in(self, content: bytes) -> set[str]:
        """Return which of its signs stand in something, however it is packed or coded."""
        return {sign for part in unpacked(content) for sign in self._signs(part)}

    def _signs(self, part: bytes) -> Iterator[str]:
        if any(self._is_shown(luma) for luma in pictures_in(part)):
            yield PICTURE
        if any(self._sounds(wave, rate) for wave, rate in sounds_in(part)):
            yield TONE
        if self._moves(part):
            yield MOTION

    def _is_shown(self, luma: np.ndarray) -> bool:
        """Return whether a picture, or a part of it as wide or high as the whole, has the pattern."""
        return any(self._correlation(piece) > 0.75 for piece in _windows(luma))

    def _correlation(self, luma: np.ndarray) -> float:
        small = cv2.resize(luma.astype(np.float32), GRID[::-1], interpolation=cv2.INTER_AREA)
        if small.std() < 4:
            return 0.0
        return float(np.corrcoef(small.ravel(), self.cells.ravel())[0, 1])

    def _sounds(self, wave: np.ndarray, rate: float) -> bool:
        blocks = wave[: len(wave) // BLOCK * BLOCK].reshape(-1, BLOCK)
        if not len(blocks):
            return False
        power = np.abs(np.fft.rfft(blocks * np.hanning(BLOCK), axis=1)) ** 2
        hz = np.fft.rfftfreq(BLOCK, 1 / rate)
        near = power[:, np.abs(hz - self.tone_hz) < 12].sum(axis=1)
        return bool((near > 0.3 * power[:, hz > 60].sum(axis=1) + 1e-9).any())

    def _moves(self, part: bytes) -> bool:
        for kind in ("<f4", "<f8"):
            size = np.dtype(kind).itemsize
            for shift in range(size):
                numbers = np.frombuffer(
                    part, kind, offset=min(shift, len(part)), count=max(0, len(part) - shift) // size
                )
                if _hits(numbers, self.motion) >= FEWEST:
                    return True
        text = [float(one) for one in re.findall(rb"\d\.\d{5,9}", part)] if part.isascii() else []
        return _hits(np.array(text), self.motion) >= FEWEST


def access_units(shown: list[Planted | None], group: int) -> list[bytes]:
    """Return an H.264 stream as a headset sends it, a unit for each picture: somebody's, or noise."""
    rng = np.random.default_rng(1)
    return video_units((picture_of(who, rng) for who in shown), key_every=group, preset="medium")


def picture_of(who: Planted | None, rng: np.random.Generator) -> np.ndarray:
    """Return a picture of somebody, or of noise."""
    if who is not None:
        return who.picture(rng)
    return rng.integers(90, 160, (GRID[0] * CELL, GRID[1] * CELL, 3)).astype(np.uint8)


def _hits(numbers: np.ndarray, wanted: np.ndarray) -> int:
    with np.errstate(all="ignore"):
        near = numbers[(numbers > 0.4) & (numbers < 2.1)].astype(np.float64)
    places = np.searchsorted(ordered := np.sort(wanted.astype(np.float64)), near).clip(1, len(wanted) - 1)
    off = np.minimum(np.abs(near - ordered[places - 1]), np.abs(near - ordered[places]))
    return int((off < 2e-6).sum())


def _windows(luma: np.ndarray) -> Iterator[np.ndarray]:
    """The whole picture, its halves side by side and the part of each without a strip for words."""
    height, width = luma.shape
    for part in (luma, luma[:, : width // 2], luma[:, width // 2 :]):
        yield part
        filled = np.flatnonzero(part.std(axis=1) > 8)
        across = np.flatnonzero(part.std(axis=0) > 8)
        if len(filled) > 16 and len(across) > 16:
            yield part[filled[0] : filled[-1] + 1, across[0] : across[-1] + 1]
        side = min(height, part.shape[1] * 3 // 4)
        yield part[(height - side) // 2 : (height + side) // 2]


def unpacked(content: bytes) -> Iterator[bytes]:
    """Something as it is, and what is packed in it: archives, data sets of HDF5, base64, hexadecimal of a dump."""
    yield content
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from unpacked(archive.read(name))
    if content[:8] == b"\x89HDF\r\n\x1a\n":
        with h5py.File(io.BytesIO(content)) as file:
            found: list[bytes] = []
            file.visititems(
                lambda _, one: (
                    found.append(np.asarray(one[()]).tobytes()) if isinstance(one, h5py.Dataset) else None
                )
            )
        yield from found
    if content[:4] == b"PAR1":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(io.BytesIO(content))
        yield from (
            column.to_numpy().astype(np.float64).tobytes() for column in table.columns if _is_number(column)
        )
    for one in re.findall(rb"base64,([A-Za-z0-9+/=]{200,})", content):
        yield base64.b64decode(one + b"=" * (-len(one) % 4))
    for one in re.findall(rb"\\\\?x([0-9a-f]{400,})", content):
        yield bytes.fromhex(one[: len(one) // 2 * 2].decode())


def _is_number(column: object) -> bool:
    return str(getattr(column, "type", "")) in ("double", "float")


def pictures_in(part: bytes) -> Iterator[np.ndarray]:
    """Every picture that can be decoded: films, streams of H.264 and H.265 without a frame around, JPEG and PNG."""
    for form in _forms(part):
        yield from _frames(part, form)
    for start in (hit.start() for hit in re.finditer(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n", part)):
        found = cv2.imdecode(np.frombuffer(part, np.uint8, offset=start), cv2.IMREAD_GRAYSCALE)
        if found is not None:
            yield found


def _forms(part: bytes) -> Iterable[str | None]:
    if part[4:8] == b"ftyp" or part[:4] == b"\x1aE\xdf\xa3":
        return (None,)
    has_start = re.search(rb"\x00\x00\x01[\x67\x27]", part)
    return ("h264",) if has_start else ("hevc",) if b"\0\0\0\1\x40\1" in part else ()


def _frames(part: bytes, form: str | None) -> Iterator[np.ndarray]:
    try:
        with av.open(io.BytesIO(part), format=form) as film:
            for stream in film.streams.video:
                stream.codec_context.options = {"flags": "output_corrupt"}
            if film.streams.video:
                for packet in film.demux(video=0):
                    try:
                        for frame in packet.decode():
                            yield frame.to_ndarray(format="gray")
                    except av.FFmpegError:
                        continue  # a damaged picture among others
    except (av.FFmpegError, ValueError, IndexError):
        return


def sounds_in(part: bytes) -> Iterator[tuple[np.ndarray, float]]:
    """Every sound that can be decoded, and the bytes themselves as samples of 16 and 32 bits."""
    for form in _forms(part):
        if form is None:
            yield from _decoded_sound(part)
    for kind in ("<i2", "<f4"):
        size = np.dtype(kind).itemsize
        for shift in range(size):
            count = max(0, len(part) - shift) // size
            wave = np.frombuffer(part, kind, offset=min(shift, len(part)), count=count)
            with np.errstate(all="ignore"):
                sane = np.where(np.isfinite(wave) & (np.abs(wave) < 1e5), wave, 0).astype(np.float32)
            yield sane, SOUND_HZ


def _decoded_sound(part: bytes) -> Iterator[tuple[np.ndarray, float]]:
    try:
        with av.open(io.BytesIO(part)) as film:
            if film.streams.audio:
                rate = film.streams.audio[0].rate
                blocks = [
                    frame.to_ndarray().reshape(-1) if frame.format.is_packed else frame.to_ndarray()[0]
                    for frame in film.decode(audio=0)
                ]
                if blocks:
                    yield np.concatenate(blocks).astype(np.float32), float(rate)
    except (av.FFmpegError, ValueError):
        return
