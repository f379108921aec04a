"""A reader that does not fit refuses at once: no numbers are made of pictures."""

from __future__ import annotations

import numpy as np
import pytest

from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import NotOfThisKind
from kitchensync.storage.reading.camera_streams import CameraStream
from kitchensync.storage.recording import StoredStream

FITS = {
    "samples": {"gyroscope", "accelerometer", "magnetometer"},
    "frames": {"pv", "vlc_leftfront", "vlc_leftleft", "vlc_rightfront", "vlc_rightright", "extended_video"},
    "depth": {"depth_ahat", "depth_longthrow", "extended_depth"},
    "records": {"spatial_input", "eye_tracking"},
    "sound": {"microphone", "extended_audio"},
}


@pytest.mark.parametrize("name", [*STREAMS, "clock/hololens", "ledger/gyroscope", "band/pulse"])
def test_every_reader_refuses_what_it_cannot_read(tmp_path, name):
    noise = np.random.default_rng(1).bytes(4096)
    stream = name if "/" in name else f"hololens-b/{name}"
    seal(tmp_path, 1, [Packet(k, 1, 1 + k, 1, 1, noise, b"") for k in range(3)], {})
    stored = StoredStream(stream, tmp_path, {}, {})
    right = [
        reader for reader, names in FITS.items() if stream.rpartition("/")[2] in names and name in STREAMS
    ]
    for reader in FITS.keys() - set(right):
        with pytest.raises(NotOfThisKind) as told:
            getattr(stored, reader)()
        assert str(told.value).startswith(f"{stream} is ")
        assert str(told.value).endswith(f"read it with {(right or ['payloads'])[0]}()")
    for reader in right:
        getattr(stored, reader)()
    stored.close()


@pytest.mark.parametrize(("kind", "right"), [("video", "pictures"), ("audio", "sound"), ("gyroscope", "imu")])
def test_every_reader_of_a_camera_too(kind, right):
    for reader in {"pictures", "sound", "imu"} - {right}:
        with pytest.raises(NotOfThisKind, match=rf"gopro/{kind} is .*; read it with {right}\(\)"):
            getattr(CameraStream(f"gopro/{kind}", None), reader)()
