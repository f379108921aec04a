"""What a headset sends: packets of every kind, answers of its remote configuration, constants."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from typing import Any

import numpy as np
from mutations import mutated
from registry import parser
from sampled_packets import read_all_of, sample

from kitchensync.sensors.errors import SensorError
from kitchensync.sensors.hololens import calibration, remote, wire
from kitchensync.sensors.hololens import constants as c
from kitchensync.sensors.hololens.catalogue import STREAMS

ROOM = 1 << 16
"""Bytes that a socket keeps for who has not read yet."""
KINDS = [name for name in STREAMS if not name.startswith("vlc_") or name == "vlc_leftfront"]


def _packet_parser(name: str) -> None:
    spec = STREAMS[name]

    def make(rng: random.Random) -> bytes:
        frame = wire.join_frame(rng.randrange(2**40), sample(name, rng), bytes(spec.pose_bytes))
        if rng.random() < 0.3:
            return mutated(frame, rng)
        payload = mutated(sample(name, rng), rng)[: spec.max_payload_bytes]
        return wire.join_frame(rng.randrange(2**64), payload, rng.randbytes(spec.pose_bytes))

    def read(content: bytes) -> None:
        read_all_of(name, wire.split_frame(content, spec.pose_bytes)[1])

    read.__name__ = f"packet_{name}"
    parser(f"packets of {name}, decoded as far as a reader does", SensorError, make=make)(read)


for _kind in KINDS:
    _packet_parser(_kind)


@contextlib.contextmanager
def _answering(content: bytes) -> Any:
    """Let the client of the remote configuration meet an answer that is there already, then the end."""
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    kept = remote._connect
    remote._connect = lambda *_: ours
    try:
        with theirs:
            theirs.sendall(content[:ROOM])
            theirs.shutdown(socket.SHUT_WR)
            yield
    finally:
        remote._connect = kept


def _answers() -> list[bytes]:
    version = struct.pack("<4H", 1, 0, 37, 0)
    return [version + np.random.default_rng(1).bytes(size) for size in (0, 24, 200, 700)]


@parser("answers of the remote configuration, port 3809", SensorError, seeds=_answers)
def remote_answers(content: bytes) -> None:
    with _answering(content), remote.RemoteControl("headset") as control:
        remote.require_version(control.version()[:3], "1.0.37")
        control.utc_offset()
        control.pv_is_on()
        control.clock_exchange(with_utc=True)
        control.map_points(3801, c.MapDirection.PIXEL_TO_UNIT_PLANE, np.zeros((3, 2), np.float32))
        control.rig_poses([1, 2])


@parser("the server's version as a text", SensorError, ValueError, seeds=lambda: [b"1.0.37", b"1.0.37.0"])
def version_text(content: bytes) -> None:
    remote.parse_version(content.decode("utf-8", "replace"))


def _constants() -> list[bytes]:
    sizes = {one.constants_bytes for one in STREAMS.values() if one.constants}
    text = "[a device]".encode("utf-16-le")
    return [bytes(size) for size in sorted(sizes)] + [len(text).to_bytes(4, "little") + text]


@parser("constants of every sensor", SensorError, seeds=_constants)
def constants(content: bytes) -> None:
    have = [stream for stream in STREAMS.values() if stream.constants or stream.device_list]
    wrong = []
    for stream in have:
        try:
            calibration.parse(stream, content)
        except SensorError as error:
            wrong.append(error)
    if len(wrong) == len(have):
        raise wrong[0]
