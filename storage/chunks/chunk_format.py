"""What is inside a chunk or an archive, by name: `docs/reference/recording-format.md` says the same for people."""

from __future__ import annotations

import numpy as np

SCHEMA = "chunk/2"

CHUNK, ARCHIVE = "chunk", "archive"
"""Attribute `kind`: some seconds of a stream, or all of it."""

INDEX = np.dtype(
    [
        ("seq", "<u8"),  # the producer's number of the packet, from 0, without holes unless a loss is named
        ("epoch_ms", "<u8"),  # which run of the producer numbered it (Unix milliseconds of its start)
        ("device_ticks", "<i8"),  # the sensor's stamp, 100 ns ticks of the device's clock, as sent
        ("host_ns", "<i8"),  # arrival, CLOCK_MONOTONIC of the capture computer
        ("offset", "<u8"),  # first byte of the payload among all payloads of the file, one after another
        ("size", "<u4"),  # bytes of the payload
        ("crc32", "<u4"),  # of the payload
        ("connection", "<u4"),  # which connection of this run delivered it, from 1
    ]
)
"""One row a packet, in the order of arrival."""

BLOCKS = np.dtype(
    [
        ("number", "<u4"),  # of the chunk, from 1
        ("first_row", "<u8"),  # its first packet in `index`
        ("rows", "<u8"),  # how many packets it held
        ("file_bytes", "<u8"),  # size of its file
        ("file_sha256", "S64"),  # of its file, as it was sealed
        ("payload_sha256", "S64"),  # of its payloads one after another
    ]
)
"""In an archive: one row for every chunk that was packed."""

POSE_FLOATS = 16
DEVICE_TICK_HZ = 10_000_000
HOST_CLOCK = "CLOCK_MONOTONIC, ns"
