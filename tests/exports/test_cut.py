"""`kitchensync cut`: a part has the same data as the whole recording, and nothing outside its span."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import av
import h5py
import numpy as np
import pytest
from cooked_recording import DONE_S, write_cooked
from resealed import reseal
from small_recordings import HOST0_NS
from typed_commands import answer

import kitchensync as ks
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.errors import HoldsPauses
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest, read_manifest, write_json
from kitchensync.storage.recording import open_recording
from kitchensync.storage.redact.to_destroy import check_no_pauses

pytestmark = pytest.mark.slow
FIRST_S, LAST_S, EDGE_S, GROUP_S = 9.0, 14.0, 0.5, 1.01
PV, FILM = "hololens/pv", "gopro/GX010001.MP4"

run = partial(answer, code=None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An aligned recording with consent; its packets have the true times of the virtual kitchen."""
    take = write_aligned(tmp_path_factory.mktemp("whole"))
    with edit_manifest(take) as manifest:
        manifest |= {"consent": "form-7", "consent_scopes": ["annotate"], "state": "complete"}
    return take


def write_aligned(folder: Path) -> Path:
    kitchen = write_cooked(folder)
    for name in (PV, "hololens/gyroscope", "hololens/depth_ahat"):
        reseal(folder / "take1", name, kitchen)
    assert run("sync", folder / "take1", "--jobs", "1")["recordings"][0]["status"] == "aligned"
    return folder / "take1"


def copied(recording: Path, to: Path) -> Path:
    """Copy a recording without the list of files derived from it."""
    return Path(shutil.copytree(recording, to, ignore=shutil.ignore_patterns("_app")))


@contextmanager
def edit_media(recording: Path) -> Iterator[dict[str, Any]]:
    path = recording / "gopro" / "media.json"
    media = json.loads(path.read_bytes())
    yield media
    write_json(path, {key: value for key, value in media.items() if key != "check"})


@pytest.fixture(scope="module")
def part(whole: Path) -> tuple[Path, dict[str, Any]]:
    out = whole.parent / "part"
    return out, run("cut", whole, "--from", FIRST_S, "--to", LAST_S, "--out", out)


def payloads_in(recording: Path, stream: str) -> list[bytes]:
    """All payloads in a recording's files, read by h5py alone."""
    payloads = []
    for path in sorted((recording / stream).glob("*.h5")):
        with h5py.File(path) as file:
            content = b"".join(
                np.asarray(file[name]).tobytes() for name in file if name not in ("index", "pose")
            )
            for row in file["index"]:
                payloads.append(content[int(row["offset"]) : int(row["offset"]) + int(row["size"])])
    return payloads


def test_the_span_is_read_as_before(whole: Path, part: tuple[Path, dict[str, Any]]) -> None:
    path, report = part
    assert (report["recording"], report["of"], report["sync"]) == ("part", "take1", "aligned")
    with ks.open(whole) as before, ks.open(path) as after:
        for name in ("pv", "gopro", "gyroscope"):
            old, new = getattr(before, name), getattr(after, name)
            inside = (old.times >= FIRST_S) & (old.times <= LAST_S)
            assert np.isin(old.times[inside], new.times).all(), name
            assert np.isin(new.times, old.times).all(), name
            assert new.times.min() > FIRST_S - EDGE_S - GROUP_S
            assert new.times.max() < LAST_S + EDGE_S
            for at in np.flatnonzero(inside)[:: max(1, inside.sum() // 5)]:
                seconds = float(old.times[at])
                assert np.array_equal(new.at(seconds), old[int(at)]), f"{name} at {seconds}"
            assert np.array_equal(new[-1], old.at(float(new.times[-1]))), (
                "the last frame, which no other follows"
            )
        assert after.utc(10.0) == before.utc(10.0)
    maps = [
        json.loads((folder / "sync/alignment/GX010001.MP4.json").read_text())["map"]
        for folder in (whole, path)
    ]
    assert maps[0] == maps[1], "the alignment is kept"


def test_info_describes_only_the_part(whole: Path, part: tuple[Path, dict[str, Any]]) -> None:
    before, report = (run("info", folder) for folder in (whole, part[0]))
    assert report["seconds"] == LAST_S - FIRST_S < before["seconds"]
    with ks.open(part[0]) as after:
        for name in ("pv", "gyroscope"):
            facts, times = report["streams"][f"hololens/{name}"], getattr(after, name).times
            assert facts["packets"] < before["streams"][f"hololens/{name}"]["packets"]
            assert facts["from_s"] > FIRST_S - EDGE_S - GROUP_S - 0.1
            assert facts["to_s"] < LAST_S + EDGE_S
            assert times.min() >= facts["from_s"] - 0.001
    (film,) = report["cameras"]["gopro"]["files"]
    with av.open(str(part[0] / FILM)) as opened:
        shown = sum(packet.size > 4 for packet in opened.demux(video=0))
        rate = float(opened.streams.video[0].average_rate)
    assert film["pictures"] == shown < before["cameras"]["gopro"]["files"][0]["pictures"]
    assert film["seconds"] == pytest.approx(shown / rate, abs=0.01)
    assert report["cameras"]["gopro"]["seconds"] == film["seconds"]


def test_a_part_has_only_its_own_steps_and_they_are_counted_once(
    whole: Path, part: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with ks.open(whole) as before, ks.open(part[0]) as after:
        of_whole, of_part = before.steps, after.steps
    ends = np.array(list(DONE_S.values()))
    starts = np.array([0.0, *ends[:-1]])
    inside = (starts < LAST_S) & (ends > FIRST_S)
    assert 0 < inside.sum() < len(of_whole)
    for column in ("node", "start", "end"):
        assert list(of_part[column]) == list(of_whole[column][: len(inside)][inside])
    run("cut", part[0], "--to", 11, "--out", tmp_path / "again")
    with ks.open(tmp_path / "again") as again:
        assert list(again.steps["node"]) == list(of_part["node"][of_part["start"] < 11])
    copied(whole, tmp_path / "take1")
    report = run("list", tmp_path)["recordings"]
    assert [(row["recording"], row["part_of"]) for row in report] == [("again", "part"), ("take1", None)]
    assert [row["recording"] for row in run("list", tmp_path, "--where", "part_of=")["recordings"]] == [
        "take1"
    ]
    assert list(ks.steps(tmp_path)["step"]) == list(of_whole["step"])


def test_files_of_a_part_have_nothing_outside_the_span(
    whole: Path, part: tuple[Path, dict[str, Any]]
) -> None:
    path, _ = part
    kept, of_whole = payloads_in(path, PV), payloads_in(whole, PV)
    first = of_whole.index(kept[0])
    assert kept == of_whole[first : first + len(kept)]
    assert len(kept) < 31 * (LAST_S - FIRST_S + 2 * EDGE_S) + 30, "it starts at the key frame before the span"
    sizes = {}
    for folder in (whole, path):
        with av.open(str(folder / FILM)) as film:
            packets = [bytes(packet) for packet in film.demux(video=0) if packet.size]
            sound = (
                [bytes(packet) for packet in film.demux(audio=0) if packet.size] if film.streams.audio else []
            )
        sizes[folder] = len(packets)
        if folder == path:
            emptied = [number for number, packet in enumerate(packets) if packet == bytes(4)]
    assert sizes[whole] == sizes[path], "frames keep their numbers"
    with ks.open(whole) as before:
        kept_s = before.gopro.times[np.setdiff1d(np.arange(len(packets)), emptied)]
    assert FIRST_S - EDGE_S - 2 * GROUP_S < kept_s.min() < FIRST_S
    assert LAST_S < kept_s.max() < LAST_S + EDGE_S
    assert 0 < sizes[path] - len(emptied) < sizes[path] / 2
    assert sound == []
    assert (path / FILM).stat().st_size < (whole / FILM).stat().st_size


def test_frames_of_the_video_are_those_of_the_whole(whole: Path, part: tuple[Path, dict[str, Any]]) -> None:
    with av.open(str(whole / FILM)) as film:
        every_frame = [picture.to_ndarray(format="rgb24") for picture in film.decode(video=0)]
    with ks.open(part[0]) as after:
        rows = after.gopro.rows
        assert np.array_equal(rows, np.arange(rows[0], rows[-1] + 1))
        for at in (0, 1, len(rows) // 2, len(rows) - 1):
            assert np.array_equal(after.gopro[at], every_frame[rows[at]]), at


def test_a_part_passes_verify_with_its_gaps_and_keeps_consent(
    whole: Path, part: tuple[Path, dict[str, Any]]
) -> None:
    path, _ = part
    (listed,) = run("list", path)["recordings"]
    before, after = run("verify", whole), run("verify", path)
    assert listed["verdict"] == part[1]["verdict"] == after["status"]
    assert after["corrupt"] == []
    assert after["status"] == before["status"], after["reasons"]
    for name, report in after["streams"].items():
        if name.startswith("hololens/"):
            assert report["received"] == before["streams"][name]["received"]
            gone = sum(last + 1 - first for first, last in report["missing"])
            assert report["stored"] + gone == report["received"]
            assert {gap["cause"] for gap in report["gaps"]} <= {
                "cut",
                *(g["cause"] for g in before["streams"][name]["gaps"]),
            }
    old, new = read_manifest(whole), read_manifest(path)
    assert new["made_from"] == [old["uuid"]] != [new["uuid"]]
    assert [new[key] for key in ("consent", "consent_scopes")] == ["form-7", ["annotate"]]


def test_a_part_can_be_cut_again_and_keeps_its_session_time(
    part: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    path, _ = part
    report = run("cut", path, "--from", 10, "--to", 11, "--out", tmp_path / "again")
    assert report["recording"] == "again"
    with ks.open(path) as before, ks.open(tmp_path / "again") as after:
        assert np.array_equal(after.pv.at(10.5), before.pv.at(10.5))
        assert 9 - EDGE_S < after.gopro.times[0] < 10 < 11 < after.gopro.times[-1] < 11 + EDGE_S
    run("cut", path, "--from", 0, "--out", tmp_path / "wider")
    with ks.open(path) as before, ks.open(tmp_path / "wider") as after:
        assert np.array_equal(after.gopro.times, before.gopro.times), "data outside the part are not restored"
        assert np.array_equal(after.pv.times, before.pv.times)


def test_the_video_of_a_part_is_exported_as_mcap(part: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    take = Path(shutil.copytree(part[0], tmp_path / "part"))
    with edit_manifest(take) as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    (report,) = run("export", "mcap", take, "--out", tmp_path / "out")["recordings"]
    with ks.open(take) as after:
        assert len(after.gopro) - 30 < report["messages"]["gopro/video"] <= len(after.gopro), (
            "from a key frame on"
        )


def test_a_span_is_exported_the_same_from_a_part_and_the_whole(whole: Path, tmp_path: Path) -> None:
    take = copied(whole, tmp_path / "take1")
    with edit_manifest(take) as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    span = ("--from", FIRST_S + 0.9, "--to", LAST_S, "--streams", "pv,video")
    run("cut", take, *span[:4], "--out", tmp_path / "part")
    counts = []
    for folder in (take, tmp_path / "part"):
        (report,) = run("export", "mcap", folder, *span, "--out", tmp_path / f"{folder.name}-out")[
            "recordings"
        ]
        counts.append(
            {topic: count for topic, count in report["messages"].items() if topic in (PV, "gopro/video")}
        )
    assert counts[0] == counts[1]
    assert min(counts[0].values()) > 100


def test_a_data_set_does_not_accept_a_part(part: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    take = Path(shutil.copytree(part[0], tmp_path / "data" / "part"))
    with edit_manifest(take) as manifest:
        manifest["consent_scopes"] = ["release_raw"]
    report = answer("release", "captaincook4d", take.parent, "--out", tmp_path / "out", code=1)
    assert "it was cut or replayed from another recording; use the original" in report["reason"]


def test_nothing_of_a_privacy_pause_is_in_a_part(tmp_path: Path) -> None:
    whole = write_aligned(tmp_path)
    log, out = EventLog(whole, "tablet"), tmp_path / "part"
    for kind, at_s in (("pause", 10), ("resume", 11), ("pause", 25), ("resume", 26)):
        log.append(kind, host_ns=HOST0_NS + at_s * 10**9, uncertainty_ns=0, body={})
    run("cut", whole, "--from", FIRST_S, "--to", LAST_S, "--out", out)
    with ks.open(whole) as before, ks.open(out) as shown, ks.open(out, with_pauses=True) as after:
        times = before.pv.times
        hole = times[np.flatnonzero(np.diff(times) > 0.9)[0]]
        assert not ((after.pv.times > hole + 0.1) & (after.pv.times < hole + 0.9)).any()
        assert ((after.pv.times > FIRST_S) & (after.pv.times < hole)).any()
        for at in range(len(shown.pv)):
            assert np.array_equal(shown.pv[at], before.pv.at(float(shown.pv.times[at]))), at
    kept = payloads_in(out, PV)
    with ks.open(whole, with_pauses=True) as unpaused:
        inside = (unpaused.pv.times > hole + 0.1) & (unpaused.pv.times < hole + 0.9)
        hidden = {unpaused.stored[PV].payload(int(row)) for row in np.flatnonzero(inside)}
    assert hidden
    assert not hidden & set(kept)
    check_no_pauses(out)  # the other pause is outside the part
    before, report = payloads_in(out, PV), run("redact", out, "--reason", "test")
    assert (report["status"], report["films"], payloads_in(out, PV)) == ("nothing", [], before)


def test_late_packets_are_cut_by_their_timestamp(whole: Path, tmp_path: Path) -> None:
    take = copied(whole, tmp_path / "take1")
    with open_recording(take) as opened:
        stream, poses = opened[PV], opened[PV].poses()
        late = []
        for row, payload in stream.packets():
            seq, epoch, ticks, host_ns = (
                int(stream.index[row][name]) for name in stream.index.dtype.names[:4]
            )
            arrived_ns = host_ns + (40 * 10**9 if row < 30 else 0)
            late.append(Packet(seq, epoch, ticks, arrived_ns, 1, payload, poses[row].tobytes()))
    shutil.rmtree(take / PV)
    (take / PV).mkdir()
    seal(take / PV, 1, late, {"stream": PV})
    run("cut", take, "--from", FIRST_S, "--to", LAST_S, "--out", tmp_path / "part")
    kept = set(payloads_in(tmp_path / "part", PV))
    assert kept
    assert not kept & {packet.payload for packet in late[:30]}


def test_a_pause_that_is_entered_later_is_destroyed(
    part: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    take = Path(shutil.copytree(part[0], tmp_path / "part"))
    log = EventLog(take, "tablet_late")
    log.append("pause", host_ns=HOST0_NS + 12 * 10**9, uncertainty_ns=0, body={})
    log.append("resume", host_ns=HOST0_NS + round(12.4e9), uncertainty_ns=0, body={})
    with pytest.raises(HoldsPauses):
        check_no_pauses(take)
    assert run("redact", take, "--reason", "test")["films"] == [FILM]
    with ks.open(part[0]) as before, ks.open(take) as after:
        assert 0 < len(after.gopro) < len(before.gopro)
        assert np.array_equal(after.gopro[0], before.gopro[0])
    assert run("verify", take)["corrupt"] == []


def test_a_withdrawal_of_the_whole_finds_moved_parts(whole: Path, tmp_path: Path) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    take, other = (copied(whole, data / name) for name in ("take1", "take2"))
    for folder, pseudonym in ((take, "P07"), (other, "P08")):
        with edit_manifest(folder) as manifest:
            manifest |= {"recording": folder.name, "pseudonym": pseudonym, "uuid": f"uuid of {folder.name}"}
        with edit_media(folder) as media:
            media["files"] = [{"file": "GX010001.MP4", "sha256": f"video of {folder.name}"}]
    run("cut", take, "--from", 9, "--to", 14, "--out", data / "part")
    run("cut", data / "part", "--from", 10, "--to", 11, "--out", away / "part-of-part")
    run("cut", take, "--from", 9, "--to", 10, "--out", away / "noted")
    run("cut", other, "--from", 9, "--to", 10, "--out", data / "other-part")
    for name in ("renamed", "between"):
        run("cut", take, "--from", 9, "--to", 10, "--out", away / f"{name}-part")
    (away / "renamed-part").rename(away / "named-anew")
    run("cut", away / "between-part", "--from", 9.2, "--to", 9.8, "--out", away / "of-between")
    shutil.rmtree(away / "between-part")
    run("cut", data / "part", "--from", 9.2, "--to", 9.8, "--out", tmp_path / "far" / "of-part")
    shutil.copytree(data / "part", data / "deep" / "copy")
    (data / "part").rename(data / "deep" / "part")
    report = run("withdraw", data / "take1")
    assert report["status"] == "done", json.dumps(report)
    gone = {data / "take1", data / "deep/part", data / "deep/copy", tmp_path / "far/of-part"}
    gone |= {away / name for name in ("part-of-part", "noted", "named-anew", "of-between")}
    assert {Path(place["place"]) for place in report["places"]} >= gone
    for folder in gone:
        assert [path.name for path in folder.rglob("*") if path.is_file()] == ["recording.json"], folder
    for folder in (other, data / "other-part"):
        assert "withdrawn" not in read_manifest(folder)
        assert (folder / FILM).is_file()
    assert run("withdraw", data / "take1")["status"] == "done", "again"


def test_a_withdrawal_of_a_part_leaves_the_others(whole: Path, tmp_path: Path) -> None:
    take = copied(whole, tmp_path / "data" / "take1")
    for name in ("part", "other"):
        run("cut", take, "--from", 9, "--to", 14, "--out", take.parent / name)
    report = run("withdraw", take.parent / "part")
    assert (report["status"], report["recordings"]) == ("done", ["part"])
    assert run("withdraw", take.parent / "part")["recordings"] == ["part"], "and no other"
    for name in ("take1", "other"):
        assert (take.parent / name / FILM).is_file()
        assert "withdrawn" not in read_manifest(take.parent / name)
    places = run("withdraw", take)["places"]
    assert "open" not in json.dumps([place["open"] for place in places if place["open"]])


def test_a_withdrawal_names_unreadable_parts_and_removes_the_others(whole: Path, tmp_path: Path) -> None:
    take = copied(whole, tmp_path / "data" / "take1")
    for name in ("broken", "part"):
        run("cut", take, "--from", 9, "--to", 10, "--out", take.parent / name)
    (take.parent / "broken" / "recording.json").write_text('{"broken')
    report = run("withdraw", take)
    assert [place["place"] for place in report["places"] if place["open"]] == [str(take.parent / "broken")]
    assert [path.parent.parent.name for path in take.parent.rglob("*.MP4")] == ["broken"]


def test_a_withdrawal_of_a_person_includes_parts(whole: Path, tmp_path: Path) -> None:
    take = copied(whole, tmp_path / "data" / "take1")
    with edit_manifest(take) as manifest:
        manifest["pseudonym"] = "P07"
    run("cut", take, "--from", 9, "--to", 14, "--out", take.parent / "a-part")
    report = run("withdraw", "--person", "P07", "--data", take.parent)
    assert (report["status"], sorted(report["recordings"])) == ("done", ["a-part", "take1"]), json.dumps(
        report
    )
    assert not list(take.parent.rglob("*.MP4"))


def test_a_recording_is_never_replaced(whole: Path, part: tuple[Path, dict[str, Any]]) -> None:
    for existing in (whole, part[0]):
        report = answer("cut", whole, "--to", 5, "--out", existing, code=1)["reason"]
        assert f"{existing.name}: is a recording" in report
    assert (whole / FILM).is_file()


def test_invalid_cuts_are_refused_in_one_line(whole: Path, tmp_path: Path) -> None:
    def refused(*args: Any, code: int = 1) -> str:
        return str(answer("cut", *args, "--out", tmp_path / "out", code=code)["reason"])

    assert "the span is empty" in refused(whole, "--from", 500)
    assert "is an empty span" in refused(whole, "--from", 5, "--to", 4)
    assert "step 4 was not done" in refused(whole, "--step", 4)
    alone = Path(shutil.copytree(whole, tmp_path / "alone"))
    clock = min(alone.glob("clock/*/*.h5"))
    size = clock.stat().st_size
    os.truncate(clock, 1 << 40)
    assert "is larger than any file of its kind" in refused(alone, "--to", 5)
    os.truncate(clock, size)
    shutil.rmtree(alone / "sync")
    (alone / "gopro" / "media.json").unlink()
    assert "nothing tells well when gopro/GX010001.MP4 was filmed" in refused(alone, "--to", 5)
    with edit_manifest(alone) as manifest:
        manifest["state"] = "recording"
    assert "it is not finished" in refused(alone, "--to", 5)
    assert not (tmp_path / "out").exists()
    report = answer("cut", whole, "--to", 5, "--out", tmp_path / "my part", code=1)["reason"]
    assert "my part" in report
