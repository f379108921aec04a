"""`kitchensync release captaincook4d` over own recordings, as it is typed: times, what is left out, going on."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from cooked_recording import copied
from numbered_recording import FRAME_S, film_host_ns, write_numbered
from small_recordings import FRAMES, HOST0_NS, SEED, write_film, write_manifest, write_shutter
from typed_commands import answer

from kitchensync.cli import main
from kitchensync.dataset.release import release_media
from kitchensync.sensors.gopro.files.clip import open_clip
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest, read_manifest
from kitchensync.storage.recording_files.annotation_folder import add_judged
from kitchensync.sync.report.page import write_report
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

STEPS = {str(n): {"label": f"Do-Do thing {n}", "text": f"Do thing {n}"} for n in range(1, 9)}
UNSURE_NS = 2_000_000
FROZEN = {
    "name": "tea", "title": "Tea", "order": list(range(1, 9)), "steps": STEPS, "planned": [], "strategy": "normal",
    "edges": [[0, 1], *([n, n + 1] for n in range(1, 9))], "display": "step", "seed": 1,
}  # fmt: skip
DONE_S = {1: 3.25, 2: 5.4, 3: 7.777, 4: 11.1, 5: 14.05, 6: 19.5, 7: 24.0}


def logged(recording: Path) -> None:
    """What a tablet filed: a recipe, then steps that were done."""
    log = EventLog(recording, "tablet")
    log.append("recipe", host_ns=HOST0_NS, uncertainty_ns=UNSURE_NS, body=FROZEN, op_id="op0")
    for node, at_s in DONE_S.items():
        body = {"node": node, "device": "t"}
        at_ns = HOST0_NS + round(at_s * 1e9)
        log.append("done", host_ns=at_ns, uncertainty_ns=UNSURE_NS, body=body, op_id=f"op{node}")


@pytest.fixture(scope="module")
def kitchen_and_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kitchen, Path]:
    root = tmp_path_factory.mktemp("own")
    kitchen = write_numbered(root)
    logged(root / "take1")
    assert run("sync", root / "take1", "--jobs", "1").get("status") is None
    return kitchen, root


run = partial(answer, code=None)


@pytest.fixture
def data(kitchen_and_data: tuple[Kitchen, Path], tmp_path: Path) -> Path:
    shutil.copytree(kitchen_and_data[1], tmp_path / "data")
    return tmp_path / "data"


def released(data: Path, *more: object) -> dict[str, Any]:
    return run("release", "captaincook4d", data, "--out", data.parent / "out", *more)


def test_steps_end_where_the_film_shows_it_to_a_millisecond(
    kitchen_and_data: tuple[Kitchen, Path], data: Path
) -> None:
    assert released(data)["status"] == "PASS"
    out = data.parent / "out"
    (one,) = json.loads((out / "annotation_json/error_annotations.json").read_text())
    true_s = np.array([film_host_ns(kitchen_and_data[0], k) - HOST0_NS for k in range(FRAMES)]) / 1e9
    expected = {node: np.interp(at_s, true_s, np.arange(FRAMES) * FRAME_S) for node, at_s in DONE_S.items()}
    beside = [json.loads(line) for line in (out / "kitchensync.jsonl").read_text().splitlines()]
    bounds = [line["bound_s"] for line in beside if line["kind"] == "entry" and line["done"]]
    off = [
        entry["end_time"] - expected[node] for node, entry in enumerate(one["step_annotations"][:7], start=1)
    ]
    assert np.ptp(off) < 0.002, "one picture is 0.033 s"
    assert all(abs(away) <= bound for away, bound in zip(off, bounds, strict=True))
    assert all(bound >= UNSURE_NS / 1e9 for bound in bounds)
    assert one["step_annotations"][7]["end_time"] == -1.0
    rows = (out / "metadata/video_information.csv").read_text().splitlines()
    assert rows[1].split(",")[-1] == f"{FRAMES * FRAME_S:.2f}"


@pytest.mark.parametrize(
    ("verdict", "outcome", "is_made"),
    [
        ("did_not_happen", "", False),
        ("did_not_happen", "done", False),
        ("happened", "not_done", True),
        ("unsure", "not_done", False),
        ("unsure", "", True),
    ],
)
def test_what_was_judged_of_an_error_counts_and_the_log_is_said_too(
    verdict: str, outcome: str, is_made: bool, data: Path
) -> None:
    fields = {"node": 2, "categories": [4], "description": "spilt", "outcome": outcome}
    body = {"error_id": "e1", "device": "t", "fields": fields}
    EventLog(data / "take1", "tablet").append(
        "error", host_ns=HOST0_NS + 5 * 10**9, uncertainty_ns=UNSURE_NS, body=body, op_id="e1"
    )
    judged = {"verdict": verdict, "intent": "by_accident"}
    for told in ({"verdict": "happened"}, judged):  # the newest version counts
        add_judged(data / "take1", "errors", {"errors": [{"error_id": "e1", "judged": told}]})
    assert released(data)["status"] == "PASS"
    out = data.parent / "out"
    (one,) = json.loads((out / "annotation_json/error_annotations.json").read_text())
    assert [bool(step.get("errors")) for step in one["step_annotations"]] == [
        is_made and number == 1 for number in range(8)
    ]
    beside = [json.loads(line) for line in (out / "kitchensync.jsonl").read_text().splitlines()]
    (error,) = (error for line in beside for error in line.get("errors", []))
    assert (error["outcome"], error["judged"]) == (outcome, judged)
    tags = run("release", "stats", data)["figure19"]
    assert tags == run("release", "stats", out)["figure19"]


@pytest.mark.parametrize(
    ("key", "odd"),
    [
        *(("place", {"a": {}}), ("pseudonym", [[]]), ("recipe", ["tea"]), ("devices", []), ("uuid", None)),
        *(
            ("devices", {"gopro": None}),
            ("devices", {"gopro": {"kind": {}}}),
            ("devices", {"gopro": {"a": 1}}),
        ),
    ],
)
def test_a_manifest_from_elsewhere_with_odd_values_is_left_out(data: Path, key: str, odd: Any) -> None:
    with edit_manifest(data / "take1") as manifest:
        manifest[key] = odd
    refused = CliRunner().invoke(
        main, ["release", "captaincook4d", str(data), "--out", str(data.parent / "out")]
    )
    assert (refused.exit_code, refused.stdout) == (1, ""), refused.output
    assert refused.stderr.startswith("kitchensync: take1: ")
    assert key in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("recipe", FROZEN | {"title": {}}, "title"),
        ("recipe", FROZEN | {"steps": {"1": None}}, "steps.1"),
        ("recipe", FROZEN | {"edges": [[1, "2"]]}, "edges.0.1"),
        ("recipe", FROZEN | {"order": [1, 99]}, "99 is none of its steps"),
        ("recipe", FROZEN | {"planned": "NaN"}, "planned"),
        ("recipe", {}, "order"),
        ("done", {"node": "2"}, "node"),
        ("done", {}, "node is missing"),
        ("error", {"error_id": "e", "fields": {"categories": [99]}}, "fields.categories.0"),
        ("undo", {"undoes": [[]]}, "undoes"),
    ],
)
def test_a_log_from_elsewhere_with_odd_values_is_left_out(
    data: Path, kind: str, body: dict[str, Any], said: str
) -> None:
    if kind == "recipe":
        (data / "take1" / "events" / "tablet.jsonl").unlink()
    log = EventLog(data / "take1", "tablet")
    log.append(kind, host_ns=HOST0_NS + 1, uncertainty_ns=0, body=body, op_id="odd")
    answered = released(data)
    assert (answered["status"], said in answered["reason"]) == ("refused", True), answered
    assert "damaged event log" in answered["reason"]


def test_what_cannot_be_released_is_left_out_and_said_and_the_others_are_there(data: Path) -> None:
    shutil.rmtree(copied(data, "unsynced") / "sync")
    copied(data, "unwilling", lambda manifest: manifest.update(consent="none"))
    copied(data, "withdrawn", lambda manifest: manifest.update(withdrawn={"host_ns": 1}))
    copied(data, "live", lambda manifest: manifest.update(state="recording"))
    aborted = {"reason": "the pan burnt", "host_ns": 1}
    copied(data, "aborted", lambda manifest: manifest.update(abandoned=aborted))
    shutil.rmtree(copied(data, "unfilmed") / "gopro")
    shutil.rmtree(copied(data, "silent") / "events")
    EventLog(copied(data, "regretted"), "tablet").append(
        "withdraw", host_ns=HOST0_NS + 10**10, uncertainty_ns=UNSURE_NS, body={}, op_id="w"
    )
    elsewhere = copied(
        data, "elsewhere", lambda manifest: manifest.update(devices={"video": {"kind": "video"}})
    )
    shutil.rmtree(elsewhere / "gopro")
    refused = copied(data, "unaligned")
    for alignment in (refused / "sync/alignment").glob("*.json"):
        body = json.loads(alignment.read_text())
        body["status"] = "not_aligned"
        alignment.write_text(json.dumps(body))
    said = released(data, "--media", "360p")
    assert said["status"] == "WARN"
    assert [one["recording"] for one in said["recordings"]] == ["take1"]
    why = {one["recording"]: one["why"] for one in said["left_out"]}
    words = {
        "unsynced": "kitchensync sync", "unwilling": "release_raw", "withdrawn": "withdr",
        "unfilmed": "it has no video", "silent": "log is empty", "unaligned": "not_aligned", "live": "",
        "regretted": "withdrew", "elsewhere": "was imported", "aborted": "the pan burnt",
    }  # fmt: skip
    assert why.keys() == words.keys()
    assert all(word in why[name] for name, word in words.items())
    assert run("release", "check", data.parent / "out", "--against", data)["status"] == "PASS"


def test_a_stated_reason_releases_without_consent_and_stands_in_manifest_and_report(data: Path) -> None:
    unwilling = copied(data, "unwilling", lambda manifest: manifest.update(consent="none"))
    copied(data, "withdrawn", lambda manifest: manifest.update(withdrawn={"host_ns": 1}))
    said = released(data, "--media", "", "--without-consent", "the  founders filmed themselves")
    assert {one["recording"] for one in said["recordings"]} == {"take1", "unwilling"}
    assert [one["recording"] for one in said["left_out"]] == ["withdrawn"]
    assert "used without consent: unwilling" in said["notes"]
    assert not any("take1" in note for note in said["notes"])
    (kept,) = read_manifest(unwilling)["consent_overrides"]
    assert (kept["purpose"], kept["reason"]) == ("release_raw", "the founders filmed themselves")
    page = write_report(unwilling).read_text(encoding="utf-8")
    assert "release_raw: the founders filmed themselves" in page
    assert "none: it may be looked at" in page


def test_an_interrupted_release_goes_on_with_the_same_ids(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(data, "take2")
    out = data.parent / "out"
    write = release_media.MediaWriter.write

    def second_fails(self: release_media.MediaWriter, wanted: tuple[str, ...]) -> release_media.Media:
        if self.own.recording.id == "take2":
            raise KeyboardInterrupt
        return write(self, wanted)

    monkeypatch.setattr(release_media.MediaWriter, "write", second_fails)
    CliRunner().invoke(main, ["release", "captaincook4d", str(data), "--out", str(out)])
    left = {path.name for path in out.rglob("*") if path.is_file()}
    assert left == {"1_1_360p.mp4", "1_1_360p_frames.npz", "1_1_gyroscope.npz", "1_1.json"}
    film = out / "captain_cook_4d/gopro/resolution_360p/1_1_360p.mp4"
    written_ns = film.stat().st_mtime_ns
    monkeypatch.undo()
    copied(data, "take0")  # comes first in order of name: the ids stay
    said = released(data)
    assert {one["recording"]: one["published_id"] for one in said["recordings"]} == {
        "take0": "1_3",
        "take1": "1_1",
        "take2": "1_2",
    }
    assert film.stat().st_mtime_ns == written_ns
    assert run("release", "check", out)["status"] == "PASS"


def test_several_workers_make_the_same_data_set(data: Path) -> None:
    copied(data, "take2")
    table = data.parent / "table.json"
    given = ("--numbering", table, "--media", "360p,hololens")
    alone, together = data.parent / "alone" / "set", data.parent / "together" / "set"
    assert run("release", "captaincook4d", data, "--out", alone, *given, "--jobs", "1")["status"] == "PASS"
    said = run("release", "captaincook4d", data, "--out", together, *given, "--jobs", "2")
    assert [one["recording"] for one in said["recordings"]] == ["take1", "take2"]
    files = {path.relative_to(alone): path.read_bytes() for path in alone.rglob("*") if path.is_file()}
    assert len(files) > 20
    assert files == {
        path.relative_to(together): path.read_bytes() for path in together.rglob("*") if path.is_file()
    }


def test_a_worker_that_writes_to_another_folder_of_that_name_is_found(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(self: release_media.MediaWriter, _wanted: tuple[str, ...]) -> release_media.Media:
        return release_media.Media({"gopro_360p": f"films/{self.published_id}.mp4"})

    monkeypatch.setattr(release_media.MediaWriter, "write", elsewhere)
    out = data.parent / "out"
    done = CliRunner().invoke(main, ["release", "captaincook4d", str(data), "--out", str(out), "--json"])
    assert done.exit_code == 1
    assert "films/1_1.mp4: is not here; the workers must see the same folder" in done.stderr
    assert not list(out.rglob("*.json"))


def test_media_that_nobody_knows_are_wrong_usage(data: Path) -> None:
    result = CliRunner().invoke(
        main, ["release", "captaincook4d", str(data), "--out", str(data.parent / "out"), "--media", "8k"]
    )
    assert result.exit_code == 2
    assert "8k" in result.output


def test_without_a_headset_the_shutter_tells_where_a_step_is_with_its_doubt(tmp_path: Path) -> None:
    recording = tmp_path / "data" / "alone"
    kitchen = write_film(recording / "gopro", SEED, FRAMES)
    write_manifest(recording, {}, {"gopro": "gopro"})
    write_shutter(recording / "gopro")
    with edit_manifest(recording) as manifest:
        manifest |= {"uuid": "alone", "consent": "form-1", "consent_scopes": ["release_raw"]}
    logged(recording)
    assert "failed" not in run("sync", recording, "--jobs", "1")
    said = released(tmp_path / "data", "--media", "360p,hololens")
    assert said["status"] == "PASS", said
    (one,) = said["recordings"]
    why = {absent["kind"]: absent["why"] for absent in one["absent"]}
    assert why["hololens_sync"] == "no headset was recorded"
    with np.load(tmp_path / "out" / one["streams"]["gopro_360p_frames_npz"], allow_pickle=False) as table:
        true_ns = np.array([film_host_ns(kitchen, k) for k in range(FRAMES)])
        assert (np.abs(table["capture_ns"] - true_ns) <= table["bound_ns"]).all()
        assert 1e7 < table["bound_ns"].max() < 1.1e9
    (annotated,) = json.loads((tmp_path / "out/annotation_json/error_annotations.json").read_text())
    ends_s = [entry["end_time"] for entry in annotated["step_annotations"][:7]]
    steps_s = np.diff(list(DONE_S.values()))
    assert np.abs(np.diff(ends_s) - steps_s).max() < 0.003, "as far apart as they were touched"


def test_recordings_are_counted_and_divided_as_the_data_set_made_of_them(data: Path) -> None:
    for name in ("take2", "take3", "take4"):
        copied(data, name)
    copied(data, "unwilling", lambda manifest: manifest.update(consent="none"))
    out = data.parent / "out"
    assert released(data, "--media", "")["no_splits"].keys() == {"environment", "person", "recipes"}
    counted = [run("release", "stats", out), run("release", "stats", data)]
    (warning,) = counted[1]["warnings"]
    assert warning.startswith("left out: unwilling: nobody agreed to `release_raw`")
    for key in ("recordings", "segments", "windows", "figure19", "table11"):
        assert counted[0][key] == counted[1][key], key
    rule = ("--kind", "recordings", "--ratio", "0.5,0.25,0.25", "--seed", "4")
    for source, place in ((out, "a"), (data, "b")):
        said = run("release", "split", source, *rule, "--out", data.parent / place)
        assert (said["disjoint"], said["complete"]) == (True, True)
    name = "recordings_data_split_combined.json"
    lists = [json.loads((data.parent / place / name).read_text()) for place in ("a", "b")]
    own = {part: [one.replace("take", "1_") for one in ids] for part, ids in lists[1].items()}
    assert lists[0] == own, "recordings keep their names, the release numbers them in the same order"
    assert sorted(one for ids in lists[0].values() for one in ids) == ["1_1", "1_2", "1_3", "1_4"]
    assert run("release", "split", data, "--kind", "type", "--out", data.parent / "c")["status"] == "refused"


CANARIES = {
    "serial": "C3471325099999", "address": "192.168.77.41", "wifi": "KitchenLab-WiFi-77", "owner": "Wilhelmina Sturm",
    "pseudonym": "Basil-canary", "place": "Canary Kitchen", "reference": "form-canary-12", "second": "Clove-canary",
}  # fmt: skip


def planted(recording: Path) -> list[bytes]:
    """Put what nobody may learn into a manifest, a film and the tablet's log; return it, with all that was there."""
    with edit_manifest(recording) as manifest:
        manifest |= {
            "pseudonym": CANARIES["pseudonym"],
            "place": CANARIES["place"],
            "consent": CANARIES["reference"],
        }
        manifest["devices"]["gopro"] |= {"serial": CANARIES["serial"], "wifi": CANARIES["wifi"]}
        manifest["devices"]["hololens"] |= {"address": CANARIES["address"], "owner": CANARIES["owner"]}
    film = next((recording / "gopro").glob("*.MP4"))
    said = " ".join(CANARIES.values()).encode()
    with film.open("ab") as file:  # as an editor would: a box of its own after all others
        file.write(struct.pack(">I4s", 8 + len(said), b"uuid") + said)
    log = EventLog(recording, "tablet")
    for kind, body in (
        ("note", {"text": CANARIES["owner"]}),
        ("checked", {"confirmed_by": CANARIES["second"]}),
        ("mark", {"text": f"call {CANARIES['owner']}"}),
    ):
        log.append(kind, host_ns=HOST0_NS + 10**9, uncertainty_ns=UNSURE_NS, body=body, op_id=f"op-{kind}")
    own_serial = open_clip(film).chapters[0].serial
    assert own_serial is not None
    assert own_serial.encode() in film.read_bytes()  # places are judged in test_chapters.py
    return [
        own_serial.encode(),
        str(recording).encode(),
        *(word.encode() for word in CANARIES.values()),
    ]


def unpacked(path: Path) -> bytes:
    """The bytes of a file, and of every member where it is an archive."""
    content = path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            content += b"".join(archive.read(name) for name in archive.namelist())
    return content


def test_nothing_private_is_in_any_byte_of_a_data_set(data: Path) -> None:
    wanted = planted(data / "take1")
    assert released(data, "--media", "4k,360p,hololens")["status"] in ("PASS", "WARN")
    files = [path for path in (data.parent / "out").rglob("*") if path.is_file()]
    films = [path for path in files if path.suffix == ".mp4"]
    assert len(films) > 1
    found = {(path.name, word) for path in files for word in wanted if word in unpacked(path)}
    assert found == set()
