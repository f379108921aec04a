"""Protobuf message for MCAP files with the samples of one packet of an inertial sensor:

    syntax = "proto3";
    package kitchensync;
    message MotionSamples {
      repeated sfixed64 host_ns = 1;
      repeated float x = 2;
      repeated float y = 3;
      repeated float z = 4;
    }

Foxglove has no schema for many samples in one message. A gyroscope sends 20 packets of 315 samples per second, so the
message is encoded here, straight from the bytes of arrays.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kitchensync.shell.array_types import Int64

SAMPLES_NAME = "kitchensync.MotionSamples"
FIELDS = (("host_ns", 16), ("x", 2), ("y", 2), ("z", 2))
"""Name and type of each field (`FieldDescriptorProto.Type`: 2 is float, 16 is sfixed64), numbered from 1."""
REPEATED = 3  # `FieldDescriptorProto.Label`: LABEL_REPEATED


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _text(number: int, content: bytes) -> bytes:
    """Encode a length-delimited field: a string, a message or packed numbers."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _schema() -> bytes:
    """Encode the FileDescriptorSet (https://protobuf.dev/reference/protobuf/google.protobuf/#descriptor)."""
    message = _text(1, b"MotionSamples")
    for number, (name, kind) in enumerate(FIELDS, start=1):
        field = _text(1, name.encode()) + _number(3, number) + _number(4, REPEATED) + _number(5, kind)
        message += _text(2, field)
    file = (
        _text(1, b"kitchensync.proto") + _text(2, b"kitchensync") + _text(4, message) + _text(12, b"proto3")
    )
    return _text(1, file)


SAMPLES_SCHEMA = _schema()


def packed_samples(host_ns: Int64, xyz: npt.NDArray[np.float32]) -> bytes:
    """Encode samples: host ns (n,) and values (n, 3)."""
    columns = [host_ns.astype("<i8"), *np.asarray(xyz, "<f4").T]
    return b"".join(_text(number, column.tobytes()) for number, column in enumerate(columns, start=1))
