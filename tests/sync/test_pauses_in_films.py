"""A privacy pause in `side-by-side`, `report` and the pictures read from Python: each picture carries its number."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from numbered_pictures import luma_of, number_in
from numbered_recording import PV_S, write_numbered
from small_recordings import HOST0_NS

from kitchensync.cli import main
from kitchensync.storage.events import EventLog
from kitchensync.storage.recording import open_recording
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

BEGIN_S, END_S = 9.0, 12.5
PANEL = (slice(24, 384), slice(24, 384))
HIDDEN_PV = set(np.flatnonzero((PV_S >= BEGIN_S) & (PV_S <= END_S)).tolist())
NEAR_S = 0.06


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kitchen]:
    root = tmp_path_factory.mktemp("numbered")
    kitchen = write_numbered(root)
    done = CliRunner().invoke(main, ["sync", str(root / "take1"), "--jobs", "1"])
    assert done.exit_code == 0, done.output
    return root / "take1", kitchen


@pytest.fixture
def take(synced: tuple[Path, Kitchen], tmp_path: Path) -> Path:
    shutil.copytree(synced[0], tmp_path / "take1")
    log = EventLog(tmp_path / "take1", "tablet")
    for kind, at_s in (("pause", BEGIN_S), ("resume", END_S)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    return tmp_path / "take1"


def run(*words: object) -> None:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output


def panels_of(film: Path) -> tuple[set[int | None], list[bool]]:
    """Return the numbers in the left panels, and of each right panel whether there is a picture in it."""
    numbers, filled = set(), []
    with av.open(str(film)) as source:
        for picture in source.decode(video=0):
            luma = luma_of(picture)[24:384]
            numbers.add(number_in(luma[:, :640]))
            filled.append(float(np.ptp(np.percentile(luma[:, 640:], (5, 95)))) > 8)
    return numbers - {None}, filled


@pytest.mark.slow
def test_no_panel_shows_a_picture_of_the_pause(take: Path, synced: tuple[Path, Kitchen]) -> None:
    words = ("--from", BEGIN_S - 1, "--to", END_S + 1)
    run("side-by-side", take, "--out", take.parent / "film.mp4", *words)
    run("side-by-side", synced[0], "--out", take.parent / "whole.mp4", *words)
    (pv, camera), (all_pv, all_camera) = (panels_of(take.parent / name) for name in ("film.mp4", "whole.mp4"))
    assert all_pv - pv == HIDDEN_PV, "nothing of the pause is shown, and nothing else is lost"
    assert all(all_camera)
    at_s = PV_S[(PV_S - PV_S[0] >= BEGIN_S - 1) & (PV_S - PV_S[0] <= END_S + 1)]
    filled = np.array(camera)
    assert len(filled) == len(at_s)
    assert not filled[(at_s > BEGIN_S - 0.02) & (at_s < END_S + 0.02)].any()
    assert filled[(at_s < BEGIN_S - NEAR_S) | (at_s > END_S + NEAR_S)].all()


def test_pictures_sound_and_depth_of_it_are_not_handed_out_but_when_asked_for(take: Path) -> None:
    with open_recording(take) as recording:
        rows = {frame.row for frame in recording["hololens/pv"].frames()}
        depths = {frame.row for frame in recording["hololens/depth_ahat"].depth()}
        assert len(recording["hololens/pv"]) == len(PV_S), "packets keep their numbers"
    with open_recording(take, with_pauses=True) as recording:
        everything = {frame.row for frame in recording["hololens/pv"].frames()}
    assert everything == set(range(len(PV_S)))
    assert rows == everything - HIDDEN_PV
    assert depths == {0, 1, 2, *range(4, 12)}, "all were taken before it; the fourth is damaged"


@pytest.mark.slow
def test_motion_hands_and_gaze_of_it_are_not_handed_out_but_when_asked_for(take: Path) -> None:
    """What is left out is what lies in the pause by the packets' own stamps, and nothing far from it."""
    with open_recording(take) as recording, open_recording(take, with_pauses=True) as whole:
        for name, read in (("gyroscope", "samples"), ("spatial_input", "records")):
            stream = recording[f"hololens/{name}"]
            shown, every = (getattr(one[f"hololens/{name}"], read)() for one in (recording, whole))
            assert not stream.hidden[shown.row].any(), name
            assert 0 < len(shown.row) < len(every.row), name
            assert sorted({*every.row} - {*shown.row}) == sorted(
                {*np.flatnonzero(stream.hidden)} & {*every.row}
            )


def test_the_report_shows_no_picture_of_it(take: Path, synced: tuple[Path, Kitchen]) -> None:
    def shown(recording: Path) -> list[int | None]:
        run("report", recording)
        page = (recording / "sync" / "report.html").read_text()
        found = re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", page)
        pictures = [cv2.imdecode(np.frombuffer(base64.b64decode(one), np.uint8), 0) for one in found]
        return [number_in(cv2.resize(one, (640, 360))) for one in pictures]

    everything = shown(shutil.copytree(synced[0], take.parent / "whole"))
    left = shown(take)
    hidden = set(everything) & HIDDEN_PV
    assert hidden
    assert set(everything) - set(left) == hidden
    assert left.count(None) == everything.count(None) - len(hidden), "the camera's beside them neither"
    assert "privacy pause" in (take / "sync" / "report.html").read_text()


def test_info_says_when_it_was_on_every_clock(take: Path) -> None:
    said = json.loads(CliRunner().invoke(main, ["info", str(take), "--json"]).stdout)["pauses"]
    assert said["host_ns"] == [[HOST0_NS + round(BEGIN_S * 1e9), HOST0_NS + round(END_S * 1e9)]]
    assert {"hololens/pv", "hololens/gyroscope", "hololens/spatial_input"} == set(said["streams"])
    ((first, last),) = said["streams"]["hololens/pv"]
    with open_recording(take) as recording:
        ticks = recording["hololens/pv"].index["device_ticks"]
    assert (first, last) == (ticks[min(HIDDEN_PV)], ticks[max(HIDDEN_PV)])
    (camera,) = said["cameras"].values()
    assert camera[0][1] - camera[0][0] == pytest.approx(END_S - BEGIN_S, abs=0.15)
