"""Interrupted or damaged recordings: no wrong times, nothing of a pause, and all other streams are readable."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from cooked_recording import write_cooked
from films import film
from numbered_recording import film_host_ns, write_numbered
from small_recordings import FRAMES, HOST0_NS

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.reader.reading_clock import NotKnown
from kitchensync.reader.timed_stream import Unreadable
from kitchensync.shell import host_clock
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.recording_files.annotation_folder import (
    ACCEPTED,
    ACCEPTED_SCHEMA,
    editing,
    write_annotations,
)
from kitchensync.storage.timeline.film_times import UNKNOWN
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cooked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kitchen]:
    root = tmp_path_factory.mktemp("cooked")
    kitchen = write_cooked(root)
    with edit_manifest(root / "take1") as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    return root / "take1", kitchen


@pytest.fixture
def take(cooked: tuple[Path, Kitchen], tmp_path: Path) -> Path:
    shutil.copytree(cooked[0], tmp_path / "take1")
    return tmp_path / "take1"


def pause(take: Path, from_s: float, to_s: float) -> None:
    log = EventLog(take, "operator")
    for kind, at_s in (("pause", from_s), ("resume", to_s)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)


def restart_headset(take: Path) -> None:
    """Add clock exchanges of a second start of the headset, whose ticks start at 0 again."""
    packets = []
    for k in range(12):
        host_ns, ticks = HOST0_NS + (40 + k) * 10**9, 5 * 10**7 + k * 10**7
        exchange = host_clock.encode(host_ns - 900_000, host_ns + 1_100_000, ticks)
        packets.append(Packet(100 + k, 1, ticks, host_ns, 2, exchange, b""))
    seal(take / "clock" / "hololens", 3, packets, {})


def second_clip(take: Path, opened_s: float) -> None:
    """Add a clip of a later shutter press; it is not aligned."""
    shutil.copy(take / "gopro" / "GX010001.MP4", take / "gopro" / "GX010002.MP4")
    media = json.loads((take / "gopro" / "media.json").read_text())

    def opened(at_s: float) -> dict[str, int]:
        at_ns = HOST0_NS + round(at_s * 1e9)
        return {
            "before_host_ns": at_ns - 150_000_000,
            "after_host_ns": at_ns,
            "observed_host_ns": at_ns + 250_000_000,
        }

    media["shutter_on"], media["shutters_on_again"] = opened(2.5), [opened(opened_s)]
    (take / "gopro" / "media.json").write_text(json.dumps(media))


def exported(take: Path, kind: str, *more: object) -> dict[str, Any]:
    out = take.parent / f"out.{kind}"
    done = CliRunner().invoke(main, ["export", kind, str(take), "--out", str(out), "--json", *map(str, more)])
    assert done.exit_code == 0, done.output
    (report,) = json.loads(done.stdout)["recordings"]
    return report


def test_a_video_keeps_its_times_after_a_restart_of_the_headset(take: Path, cooked: Any) -> None:
    restart_headset(take)
    true_s = np.array([film_host_ns(cooked[1], k) - HOST0_NS for k in range(FRAMES)]) / 1e9
    with ks.open(take) as rec:
        np.testing.assert_allclose((rec.gopro.times_ns - HOST0_NS) / 1e9, true_s, atol=0.035)
        np.testing.assert_allclose(rec["gopro/gyroscope"].times[[0, -1]], true_s[[0, -1]], atol=0.1)
        assert rec.pv.bound_at(5.0) == 0.0
        assert rec.pv.bound_at(300.0) > 0.0
    pause(take, 9.0, 12.5)
    with ks.open(take) as rec:
        shown_s = true_s[rec.gopro.rows]
        assert not ((shown_s > 9.0) & (shown_s < 12.5)).any()
        assert len(rec.gopro) > FRAMES - 110
    (take / "gopro" / "media.json").unlink()
    with ks.open(take) as rec, pytest.raises(NotKnown, match="started anew"):
        rec.gopro.times  # noqa: B018 - reading the property computes it


def test_a_pause_hides_frames_of_a_clip_after_a_battery_change(take: Path) -> None:
    shutil.rmtree(take / "sync")
    second_clip(take, 60.0)
    pause(take, 65.0, 70.0)
    with ks.open(take) as rec:
        second = rec.gopro.rows[rec.gopro.rows >= FRAMES] - FRAMES
        media_s = second * 1001 / 30000
        assert not ((media_s > 5.0) & (media_s < 9.5)).any()
        assert (rec.gopro.rows < FRAMES).sum() == FRAMES
        assert len(second) > 400


def test_a_clip_that_is_not_aligned_has_no_time(take: Path) -> None:
    second_clip(take, 60.0)
    with ks.open(take) as rec:
        for stream in (rec.gopro, rec["gopro/gyroscope"], rec["gopro/audio"]):
            is_known = np.isfinite(stream.times)
            assert 0 < is_known.sum() < len(stream)
            assert (stream.times_ns[~is_known] == UNKNOWN).all()
            assert np.isnat(stream.utc[~is_known]).all()
            assert np.isfinite([at for at, _ in stream.between(5.0, 6.0)]).all()
        assert rec.gopro[-1].shape == (180, 320, 3)
        assert rec.duration == pytest.approx(26.0, abs=0.1)
    report = exported(take, "mcap")
    assert report["messages"]["gopro/video"] == FRAMES
    assert f"{FRAMES} of its frames have no time" in report["left_out"]["gopro/video"]
    assert exported(take, "tables")["tables"]["gopro/video"]["rows"] == 2 * FRAMES


def test_a_damaged_video_leaves_other_streams_readable(take: Path) -> None:
    (take / "gopro" / "GX010001.MP4").write_bytes(b"no film")
    with ks.open(take) as rec:
        assert "hololens/pv" in repr(rec)
        assert rec.at(5.0).pictures.keys() == {"pv"}
        assert "hololens/gyroscope" in rec.at(5.0).indices
        with pytest.raises(NotKnown, match="GX010001"):
            len(rec.gopro)
    for kind in ("tables", "mcap"):
        assert "GX010001" in exported(take, kind)["left_out"]["gopro/video"]


def test_a_recording_without_sync_is_exported_in_part(tmp_path: Path) -> None:
    write_numbered(tmp_path)
    report = exported(tmp_path / "take1", "tables")
    assert "unit is unknown" in report["left_out"]["hololens/gyroscope"]
    assert "kitchensync sync" in report["left_out"]["gopro/video"]
    assert report["tables"]["hololens/head"]["rows"] > 700
    assert (tmp_path / "out.tables" / "take1" / "about.json").exists()


def test_an_adopted_video_has_no_utc_times(tmp_path: Path) -> None:
    video = film(tmp_path / "card", 60, 60, seed=3)
    args = ["adopt", "found", str(video.chapters[0].path), "--data", str(tmp_path / "data")]
    assert CliRunner().invoke(main, args).exit_code == 0
    with ks.open(tmp_path / "data" / "found") as rec:
        assert rec.gopro.times[30] == pytest.approx(30 * 1001 / 30000)
        for ask in (
            lambda: rec.gopro.utc,
            lambda: rec.gopro.times_ns,
            lambda: rec.utc(1.0),
            lambda: rec.gopro.bound_at(1),
        ):
            with pytest.raises(NotKnown):
                ask()
        assert "found" in repr(rec)


def test_chapters_of_an_adopted_video_are_consecutive(tmp_path: Path) -> None:
    video = film(tmp_path / "card", 150, 90, seed=8)
    args = [
        "adopt",
        "found",
        *(str(chapter.path) for chapter in video.chapters),
        "--data",
        str(tmp_path / "data"),
    ]
    assert CliRunner().invoke(main, args).exit_code == 0
    with ks.open(tmp_path / "data" / "found") as rec:
        np.testing.assert_allclose(rec.gopro.times, np.arange(150) * 1001 / 30000, atol=1e-9)
        assert rec["video/gyroscope"].times[-1] == pytest.approx(150 * 1001 / 30000, abs=0.05)


def test_streams_of_the_headset_are_exported_without_clock_exchanges(take: Path) -> None:
    shutil.rmtree(take / "clock")
    report = exported(take, "tables")
    assert report["tables"]["hololens/gyroscope"]["rows"] > 100_000
    assert {"steps", "events"} <= report["left_out"].keys()


def test_step_times_of_another_video_are_refused(take: Path) -> None:
    body = {
        "schema": ACCEPTED_SCHEMA,
        "version": 1,
        "author": "ada",
        "fps": "25",
        "frames": 9999,
        "steps": [],
    }
    with editing(take):
        write_annotations(take, ACCEPTED, body)
    with ks.open(take) as rec, pytest.raises(NotKnown, match="9999 frames"):
        rec.steps  # noqa: B018 - reading the property computes it


def test_an_exported_span_has_only_its_own_steps(take: Path) -> None:
    import pandas

    exported(take, "tables", "--from", 5, "--to", 10)
    assert pandas.read_parquet(take.parent / "out.tables" / take.name / "steps.parquet")["node"].tolist() == [
        2,
        3,
    ]
    both = CliRunner().invoke(
        main, ["export", "tables", str(take), "--out", "o", "--step", "2", "--from", "1"]
    )
    assert (both.exit_code, "--step" in both.output) == (1, True)


def test_a_camera_with_another_name_is_one_stream(take: Path) -> None:
    (take / "gopro").rename(take / "cam")
    with edit_manifest(take) as manifest:
        manifest["devices"]["cam"] = manifest["devices"].pop("gopro")
    with ks.open(take) as rec:
        assert rec.gopro is rec.cam is rec["cam"]
        assert [name for name, stream in rec.attributes.items() if stream == "cam/video"] == ["cam", "gopro"]
        with pytest.raises(Unreadable, match="packet 3"):
            rec.depth[3]


def test_a_card_without_host_time_of_the_start_has_no_events(take: Path) -> None:
    with edit_manifest(take) as manifest:
        manifest["started"] = {"utc_ns": manifest["started"]["utc_ns"]}
    done = CliRunner().invoke(main, ["card", str(take), "--json"])
    assert json.loads(done.stdout)["events"] == []
