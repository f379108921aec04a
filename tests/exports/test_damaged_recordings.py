"""Each export of a damaged recording writes what it can and names the rest, or refuses in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow


def cut(pattern: str, part: float = 0.5) -> Callable[[Path], None]:
    """Truncate files."""

    def damage(take: Path) -> None:
        for path in sorted(take.glob(pattern)):
            path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])

    return damage


def noise(pattern: str) -> Callable[[Path], None]:
    def damage(take: Path) -> None:
        for path in sorted(take.glob(pattern)):
            content = bytearray(path.read_bytes())
            content[len(content) // 3 : len(content) // 3 + 64] = b"\xa5" * 64
            path.write_bytes(content)

    return damage


def text(name: str, content: str) -> Callable[[Path], None]:
    def damage(take: Path) -> None:
        (take / name).parent.mkdir(parents=True, exist_ok=True)
        (take / name).write_text(content)

    return damage


def without(pattern: str) -> Callable[[Path], None]:
    def damage(take: Path) -> None:
        for path in sorted(take.glob(pattern), reverse=True):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def stated(**facts: object) -> Callable[[Path], None]:
    def damage(take: Path) -> None:
        with edit_manifest(take) as manifest:
            manifest |= facts

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "half a chunk of frames": cut("hololens/pv/*1.h5"),
    "half of every chunk": cut("hololens/*/*.h5"),
    "noise in the gyroscope": noise("hololens/gyroscope/*.h5"),
    "noise in the hands": noise("hololens/spatial_input/*.h5"),
    "a chunk is missing": without("hololens/pv/*1.h5"),
    "no gyroscope": without("hololens/gyroscope"),
    "no clock": without("clock"),
    "no headset": without("hololens"),
    "no packets of the headset": without("hololens/*/*.h5"),
    "half a video": cut("gopro/*.MP4"),
    "an empty video": cut("gopro/*.MP4", 0.0),
    "noise in a video": noise("gopro/*.MP4"),
    "no video": without("gopro"),
    "not synchronized": without("sync"),
    "an alignment of nothing": text("sync/alignment/GX010001.MP4.json", "[]"),
    "half an index": cut("sync/index.parquet"),
    "no log": without("events"),
    "a torn log": cut("events/*.jsonl", 0.6),
    "a log of noise": noise("events/*.jsonl"),
    "constants of noise": noise("hololens/calibration/*.h5"),
    "half a manifest": cut("recording.json"),
    "no manifest": without("recording.json"),
    "no start": stated(started=None),
    "no devices": stated(devices={}),
    "still recording": stated(state="recording"),
    "withdrawn": stated(withdrawn={"host_ns": 1}),
    "no consent": stated(consent="none", consent_scopes=[]),
}


@pytest.mark.parametrize("kind", ["tables", "mcap", "lerobot"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_recording_is_exported_in_part_or_refused_in_one_line(
    cooked: Path, tmp_path: Path, damage: str, kind: str
) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    DAMAGES[damage](tmp_path / "take1")
    out = tmp_path / "out"
    args = ["export", kind, str(tmp_path / "take1"), "--out", str(out), "--from", "5", "--to", "7", "--json"]
    done = CliRunner().invoke(main, args)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    report = json.loads(done.stdout)
    if done.exit_code:
        assert done.exit_code == 1
        assert report["status"] == "refused"
        assert done.stderr.startswith("kitchensync: ")
        assert done.stderr.count("\n") == 1, done.stderr
        assert not any(path.is_file() for path in out.rglob("*")), "no incomplete file is left behind"
    else:
        assert any(path.is_file() for path in out.rglob("*"))
        is_whole = damage in (
            "half an index",
            "no start",
            "no devices",
            "constants of noise",
            "no log",
            "no headset",
        )
        assert (
            is_whole or report["left_out"] or any(entry["left_out"] for entry in report.get("recordings", []))
        )
