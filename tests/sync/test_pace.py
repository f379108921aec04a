"""Time-lapse, TimeWarp and slow motion: named wherever a video comes in, and never aligned."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from film_sounds import write_uneven
from films import film
from made_videos import numbered_planes, write_video

from kitchensync.cli import main
from kitchensync.sensors.gopro.files.media import open_media
from kitchensync.sensors.gopro.files.pace import pace_of
from kitchensync.virtual_kitchen.gopro.files.sensors import Instruments

NAMED = "time-lapse and TimeWarp"
NAME = "GX010001.MP4"


def as_filmed(folder: Path, **more: object) -> Path:
    film(folder, 150, None, **more)
    (made,) = folder.glob("*.MP4")
    return made.rename(folder / NAME)


def one_sample_a_picture(folder: Path) -> Path:
    """What a camera writes of a time-lapse: motion averaged over each picture."""
    return as_filmed(folder, instruments=Instruments(imu_hz=30000 / 1001))


def played_faster(folder: Path, times: float = 15) -> Path:
    """All tracks at another pace than the stamps in the telemetry tell."""
    content = bytearray(as_filmed(folder).read_bytes())
    at = -1
    while (at := content.find(b"mdhd", at + 1)) >= 0:
        place = at + 4 + (20 if content[at + 4] == 1 else 12)
        (units,) = struct.unpack_from(">I", content, place)
        struct.pack_into(">I", content, place, round(units * times))
    (folder / NAME).write_bytes(content)
    return folder / NAME


def slowed_down(folder: Path) -> Path:
    return played_faster(folder, 0.5)


def encoded_anew(folder: Path) -> Path:
    """Every 15th picture, without sound and telemetry, as a converter leaves it."""
    write_video(folder / NAME, (numbered_planes(15 * number) for number in range(48)), 30)
    return folder / NAME


LAPSES = (one_sample_a_picture, played_faster, slowed_down, encoded_anew)


def run(*words: object, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert done.exit_code == code, done.output
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_video_in_real_time_is_not_named(tmp_path: Path) -> None:
    assert pace_of(open_media(as_filmed(tmp_path / "as filmed"))) is None
    assert pace_of(open_media(write_uneven(tmp_path / "phone.MP4"))) is None, "it has sound"
    said = run("adopt", "take", tmp_path / "as filmed" / NAME, "--data", tmp_path / "data")
    assert (said["status"], said["warnings"]) == ("PASS", [])


@pytest.mark.parametrize("lapse", LAPSES)
def test_adopting_and_aligning_name_it(tmp_path: Path, lapse: Callable[[Path], Path]) -> None:
    path = lapse(tmp_path / "films")
    said = run("adopt", "take", path, "--data", tmp_path / "data")
    assert said["status"] == "WARN"
    assert [NAMED in line for line in said["warnings"]] == [True]
    spoken = CliRunner().invoke(main, ["adopt", "b", str(path), "--data", str(tmp_path / "data")])
    assert NAMED in spoken.stderr
    (answer,) = run("sync", tmp_path / "data" / "take")["recordings"]
    assert answer["status"] == "nothing_to_align"
    assert any(NAMED in reason for reason in answer["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize("lapse", LAPSES)
def test_it_is_never_aligned_with_a_headset(
    take: Path, tmp_path: Path, lapse: Callable[[Path], Path]
) -> None:
    path = lapse(tmp_path / "card" / "DCIM" / "100GOPRO")
    (imported,) = run("gopro", "import", tmp_path / "card", "--recording", take)["proposals"]
    assert any(NAMED in line for line in imported["evidence"])
    (mine,) = (take / "gopro").glob("*.MP4")
    shutil.copy(path, mine)
    done = CliRunner().invoke(main, ["sync", str(take), "--json", "--again", "--jobs", "1"])
    (answer,) = json.loads(done.stdout)["recordings"]
    (pair,) = answer["pairs"]
    assert pair["status"] == ("check" if lapse is encoded_anew else "not_aligned")
    assert NAMED in " ".join([*pair["reasons"], *pair["warnings"]])
