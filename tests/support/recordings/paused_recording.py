"""A closed recording whose every packet, picture and sound can be found again byte by byte; the truth is known."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from planted import Planted, access_units, picture_of
from sealed_chunks import sealed

from kitchensync.shell.host_clock import encode
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.disk.media_blocks import block_checksums
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import write_json

HOST0_NS, TICKS0 = 9_000_000_000_000, 5 * 10**12
SECONDS, CHUNK_S = 12, 2
FPS, GROUP, SOUND_HZ, TONE_HZ, PLANTED_HZ = 30, 15, 48_000, 440, 3_000
FILM = "gopro/GX010001.MP4"
RATES = {"hololens/pv": 30, "hololens/microphone": 47, "hololens/gyroscope": 20, "hololens/depth_ahat": 1}
SEEN = ("hololens/pv", "hololens/microphone", "hololens/depth_ahat")
"""Streams of pictures and sound."""


@dataclass
class Truth:
    """What was recorded: seconds and payload of every packet by stream; (second, bytes) of the film's samples."""

    packets: dict[str, list[tuple[float, bytes]]] = field(default_factory=dict)
    pictures: list[tuple[float, bytes]] = field(default_factory=list)
    sounds: list[tuple[float, bytes]] = field(default_factory=list)


def _payload(stream: str, rng: random.Random) -> bytes:
    if stream.endswith("gyroscope"):
        return rng.randbytes(32 * 4)
    if stream.endswith("depth_ahat"):
        return b"\0\0\0\0\0\0\x10\0" + bytes(rng.randbytes(1024)) * 1024 + bytes(8)
    return rng.randbytes(400)


def write_film(
    path: Path,
    pause_s: tuple[float, float],
    seed: int = 1,
    who: Callable[[float], Planted | None] | None = None,
) -> Truth:
    """Write a film with a key picture each half second; its sound has another tone in the pause.

    `who` says whose signs it bears at each second, in place of noise and of both tones.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed)
    with av.open(str(path), "w") as film:
        video = film.add_stream(
            "libx264", rate=FPS, options={"g": str(GROUP), "bf": "0", "sc_threshold": "0"}
        )
        video.width, video.height = (128, 96) if who else (96, 64)
        video.pix_fmt = "yuv420p"
        sound = film.add_stream("aac", rate=SOUND_HZ, layout="stereo")
        for number in range(SECONDS * FPS):
            if who:
                picture = picture_of(who(number / FPS), noise)
            else:
                picture = noise.integers(90, 160, (64, 96, 3)).astype(np.uint8)
            film.mux(video.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        film.mux(video.encode(None))
        at_s = np.arange(SECONDS * SOUND_HZ) / SOUND_HZ
        hz = np.where((at_s >= pause_s[0]) & (at_s < pause_s[1]), PLANTED_HZ, TONE_HZ)
        if who:
            hz = np.repeat(
                [one.tone_hz if (one := who(n / FPS)) else 0 for n in range(SECONDS * FPS)], SOUND_HZ // FPS
            )
        wave = (0.3 * np.sin(2 * np.pi * hz * at_s)).astype(np.float32)
        for number, start in enumerate(range(0, len(wave), 1024)):
            block = np.ascontiguousarray(np.stack([wave[start : start + 1024]] * 2))
            frame = av.AudioFrame.from_ndarray(block, "fltp", "stereo")
            frame.sample_rate, frame.pts, frame.time_base = SOUND_HZ, number * 1024, Fraction(1, SOUND_HZ)
            film.mux(sound.encode(frame))
        film.mux(sound.encode(None))
    return read_film(path)


def read_film(path: Path) -> Truth:
    """Read the samples of a film as they lie in the file."""
    found = Truth()
    with av.open(str(path)) as film:
        for packet in film.demux():
            if packet.pts is not None and packet.size:
                samples = found.pictures if packet.stream.type == "video" else found.sounds
                samples.append((float(packet.pts * packet.time_base), bytes(packet)))
    return found


def write_paused(
    path: Path,
    touches: list[tuple[str, float]],
    *,
    tone_s: tuple[float, float] = (4, 7),
    seed: int = 1,
    who: Callable[[float], Planted | None] | None = None,
) -> Truth:
    """Write the recording `path`; `touches` are pause and resume with their seconds. Return what is in it.

    `who` says whose signs film, pictures, sound and gyroscope bear at each second.
    """
    rng, files = random.Random(seed), {}
    truth = write_film(path / FILM, tone_s, seed, who)
    units = access_units([who(n / FPS) for n in range(SECONDS * FPS)], GROUP) if who else []

    def payload(stream: str, number: int) -> bytes:
        person = who(number / RATES[stream]) if who else None
        if units and stream.endswith("pv"):
            return units[number]
        if person and stream.endswith("microphone"):
            return person.block(number, SOUND_HZ // RATES[stream])
        if person and stream.endswith("gyroscope"):
            return person.gyroscope(number)
        return _payload(stream, rng)

    notes = []
    for stream, rate in RATES.items():
        told = [(n / rate, payload(stream, n)) for n in range(SECONDS * rate)]
        truth.packets[stream] = told
        pose = np.eye(4, dtype=np.float32).tobytes() if stream.endswith(("pv", "ahat")) else b""
        for number in range(SECONDS // CHUNK_S):
            rows = range(number * CHUNK_S * rate, (number + 1) * CHUNK_S * rate)
            files |= sealed(path, stream, number + 1, [_packet(n, *told[n], pose) for n in rows])
        notes.append({"stream": stream, "note": "end", "reason": "ended_by_device", "received": len(told)})
    said = [Packet(n, 1, 0, 0, 1, json.dumps(one).encode(), b"") for n, one in enumerate(notes)]
    files |= sealed(path, "ledger/hololens", 1, said)
    files |= sealed(path, "clock/hololens", 1, [_probe(n) for n in range(SECONDS)])
    _write_facts(path, files)
    log = EventLog(path, "tablet")
    for number, (kind, at_s) in enumerate(touches):
        log.append(kind, host_ns=host_ns(at_s), uncertainty_ns=0, body={}, op_id=str(number))
    return truth


def host_ns(at_s: float) -> int:
    return HOST0_NS + round(at_s * 1e9)


def ticks(at_s: float) -> int:
    return TICKS0 + round(at_s * 1e7)


def _packet(number: int, at_s: float, payload: bytes, pose: bytes) -> Packet:
    return Packet(number, 1, ticks(at_s), host_ns(at_s) + 5_000_000, 1, payload, pose)


def _probe(second: int) -> Packet:
    host, at = host_ns(second), ticks(second)
    return Packet(second, 1, at, host, 1, encode(host - 500_000, host + 500_000, at), b"")


def _write_facts(path: Path, files: dict[str, Any]) -> None:
    content = (path / FILM).read_bytes()
    entry = {"file": Path(FILM).name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    opened = {"before_host_ns": host_ns(0), "after_host_ns": host_ns(0), "observed_host_ns": host_ns(0)}
    closed = {key: value + SECONDS * 10**9 for key, value in opened.items()}
    media = {
        "files": [entry | {"blocks": block_checksums(path / FILM)}],
        "shutter_on": opened,
        "shutter_off": closed,
    }
    write_json(path / "gopro" / "media.json", media)
    moments = {
        "started": {"host_ns": host_ns(0), "utc_ns": 0},
        "stopped": {"host_ns": host_ns(SECONDS), "utc_ns": 0},
    }
    manifest = {
        "schema": "recording/1",
        "recording": path.name,
        "uuid": f"uuid of {path.name}",
        "state": "complete",
    }
    devices = {"hololens": {"kind": "hololens"}, "gopro": {"kind": "gopro"}}
    streams = {stream: {"nominal_hz": rate} for stream, rate in RATES.items()}
    write_json(
        path / "recording.json", manifest | moments | {"files": files, "streams": streams, "devices": devices}
    )
    folder = path / "sync" / "alignment"
    folder.mkdir(parents=True)
    aligned = {
        "schema": "alignment/1", "source": FILM, "master": "hololens/gyroscope", "status": "aligned",
        "samples": [[0.0, ticks(0)], [float(SECONDS), ticks(SECONDS)]], "epoch_hl2_qpc": ticks(0),
        "map": {"t_mid_s": 6.0, "coef": [0.0, 0.0], "valid_s": [0.0, float(SECONDS)]}, "sigma": {"total_ms": 2.0},
    }  # fmt: skip
    write_json(folder / "GX010001.MP4.json", aligned)
