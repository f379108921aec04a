"""`verify --deep` decodes: a silent microphone, and pictures that no decoder takes, change the verdict."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from made_videos import video_units
from sealed_chunks import sealed
from timed_recordings import host_ns

from kitchensync.sensors.hololens.streams import pv
from kitchensync.storage.chunks.chunk_writer import Packet
from kitchensync.storage.commands.storage import verify as verify_command
from kitchensync.storage.manifest import write_json
from kitchensync.storage.verify import verify

SECONDS = 4


def write(path, name, hz, payloads, format_):
    """A closed recording of one stream."""
    rows = [
        Packet(n, 1, round(n * 1e7 / hz), host_ns(n / hz), 1, body, b"") for n, body in enumerate(payloads)
    ]
    end = {
        "note": "end",
        "stream": name,
        "host_ns": host_ns(SECONDS),
        "reason": "stopped",
        "received": len(rows),
    }
    notes = [Packet(0, 1, 0, 0, 1, json.dumps(end).encode(), b"")]
    files = sealed(path, name, 1, rows) | sealed(path, "ledger/hololens", 1, notes)
    manifest = {"schema": "recording/1", "recording": path.name, "state": "complete", "files": files}
    entry = {"nominal_hz": hz, "format": {"module": "x"} | format_}
    write_json(path / "recording.json", manifest | {"streams": {name: entry}, "devices": {}})
    return path


def sound(amplitude: float) -> list[bytes]:
    """Packets of 768 samples of a tone on two channels, as the microphone sends them raw."""
    tone = amplitude * np.sin(2 * np.pi * 440 * np.arange(round(62.5 * SECONDS) * 768) / 48_000)
    samples = np.repeat(np.rint(tone * 32767).astype("<i2"), 2).reshape(-1, 768 * 2)
    return [packet.tobytes() for packet in samples]


@pytest.mark.parametrize(("amplitude", "status"), [(0.5, "PASS"), (1e-4, "WARN"), (0.0, "WARN")])
def test_a_silent_microphone_is_seen_when_listened_to(tmp_path, amplitude, status):
    form = {"codec": "raw", "channels": 2}
    path = write(tmp_path / "take", "hololens/microphone", 62.5, sound(amplitude), form)
    assert verify(path)["status"] == "PASS"
    answer = verify(path, deep=True)
    assert answer["status"] == status
    level = answer["streams"]["hololens/microphone"]["loudest_dbfs"]
    true = 20 * np.log10(amplitude / np.sqrt(2)) if amplitude else -200.0
    assert level == pytest.approx(
        true, abs=4 if 0 < amplitude < 0.1 else 0.2
    )  # 3 steps of 16 bits are left of it
    assert any("silent" in reason for reason in answer["reasons"]) == (status == "WARN")


@pytest.mark.filterwarnings("error")
def test_sound_that_decodes_to_no_numbers_is_silent_without_a_warning(tmp_path):
    signalling = np.full(
        768 * 5, 0x7FA00000, "<u4"
    ).tobytes()  # a computer complains when it calculates with it
    form = {"codec": "raw", "channels": 5}
    path = write(tmp_path / "take", "hololens/microphone", 62.5, [signalling] * round(62.5 * SECONDS), form)
    assert any("silent" in reason for reason in verify(path, deep=True)["reasons"])


def pictures(count: int, black: range = range(0)) -> list[bytes]:
    """Front camera packets: each picture a key frame, H.264 as bytes, and the metadata of the lens."""
    rng = np.random.default_rng(1)
    shown = (np.uint8(n not in black) * rng.integers(0, 255, (48, 64, 3), np.uint8) for n in range(count))
    found = video_units(shown, key_every=1)
    metadata = np.zeros((), pv.METADATA)
    metadata["width"], metadata["height"] = 64, 48
    return [pv.encode(picture, metadata) for picture in found]


@pytest.mark.parametrize(
    ("black", "said"),
    [
        (range(30, 75), ["from 0:01 to 0:02"]),
        (range(60, 200), ["from 0:02 to 0:04"]),
        (range(30, 55), []),
        (range(0), []),
    ],
)
def test_black_pictures_are_named_by_their_span(tmp_path, black, said):
    form = {"codec": "h264", "width": 64, "height": 48, "fps": 30}
    path = write(tmp_path / "take", "hololens/pv", 30.0, pictures(30 * SECONDS, black), form)
    answer = verify(path, deep=True)
    assert answer["reasons"] == [f"hololens/pv: pictures are black {span}" for span in said]
    spans = answer["streams"]["hololens/pv"].get("black", [])
    ends = [[black[0] / 30, min(black[-1] + 1, 30 * SECONDS - 1) / 30] for _ in said]
    assert spans == [pytest.approx(one, abs=1e-3) for one in ends]


def spoil(payload: bytes) -> bytes:
    """Garbage behind a start code: from its form alone the packet is one."""
    return b"\0\0\0\1" + bytes(range(7, 250)) + payload[-pv.METADATA.itemsize :]


@pytest.mark.parametrize("spoilt", [[], [40, 41, 42, 70]])
def test_pictures_that_do_not_decode_are_counted(tmp_path, spoilt):
    payloads = pictures(30 * SECONDS)
    for number in spoilt:
        payloads[number] = spoil(payloads[number])
    path = write(tmp_path / "take", "hololens/pv", 30.0, payloads, {"codec": "h264"})
    assert verify(path)["status"] == "PASS"
    run = CliRunner().invoke(verify_command, [str(path), "--deep", "--json"])
    answer = json.loads(run.output)
    assert answer["status"] == ("WARN" if spoilt else "PASS")
    decoded = answer["streams"]["hololens/pv"]["decoded"]
    assert decoded["asked"] == 30 * SECONDS
    assert decoded["undecodable"] == len(spoilt)
