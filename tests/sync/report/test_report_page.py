"""The page as a whole: what it says of recordings that are well, damaged, open, empty, or hostile."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kitchensync.storage.errors import NotARecording
from kitchensync.storage.manifest import write_json
from kitchensync.storage.options.outputs import OutputRefused
from kitchensync.sync.report.page import write_report
from kitchensync.sync.synchronize import synchronize

pytestmark = pytest.mark.slow

EVIL = '<script>alert("x")</script><img src=http://evil.example/x.png onerror=1>'


def share(percent: str) -> float:
    return float(percent.rstrip("%")) / 100


def test_the_page_is_well_formed_and_loads_nothing(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1")
    desk.note(recording, "done", 3.0, text="Boil water", step=1)
    page = report_of(recording)
    assert page.badly_closed == []
    assert page.open == []
    assert all(address.startswith(("data:", "#")) for address in page.loads())
    html = (recording / "sync" / "report.html").read_text()
    assert "http://" not in html
    assert "https://" not in html
    assert "<script" not in html
    assert "url(#hatch)" in html
    assert not list((recording / "sync").glob("*.part"))


@pytest.mark.promise("One page to judge a recording by")
def test_the_verdict_and_the_facts_stand_first(desk, report_of, tmp_path):
    page = report_of(desk.make_recording(tmp_path / "take-1"))
    text = page.text
    assert text.index("WARN") < text.index("Timeline") < text.index("Rates") < text.index("Alignment")
    assert "hololens/gyroscope: 1 gap (device_rate)" in text
    for words in (
        "2025-06-15 17:06:40",
        "Europe/Berlin, UTC+02:00",
        "P07",
        "kitchen 3",
        "none: it may be looked at",
    ):
        assert words in text
    assert "4 mm steps" in text
    assert "nothing to align" in text
    assert text.startswith("take-1: WARN, nothing to align")


def test_a_gap_is_drawn_where_it_was(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1")
    gyroscope = report_of(recording).lanes()["hololens/gyroscope"]
    (bar,) = [shape for shape in gyroscope if shape.get("class") == "have"]
    (gap,) = [shape for shape in gyroscope if shape.get("class") == "gap"]
    end_s = 1.01 * 9.95  # the last packet, and one percent of room
    assert share(bar["x"]) == pytest.approx(0.0, abs=1e-3)
    assert share(bar["width"]) == pytest.approx(9.95 / end_s, abs=1e-3)
    assert share(gap["x"]) == pytest.approx(4.0 / end_s, abs=1e-3)
    assert share(gap["width"]) == pytest.approx(2.0 / end_s, abs=1e-3)
    assert not [s for s in report_of(recording).lanes()["hololens/accelerometer"] if s.get("class") == "gap"]


def test_rates_are_measured_by_the_devices_stamps(desk, report_of, tmp_path):
    page = report_of(desk.make_recording(tmp_path / "take-1", {"hololens/accelerometer": desk.steady(6)}))
    assert "6.00" in page.text
    assert "50%, low" in page.text


def test_events_stand_at_their_time_with_their_words(desk, report_of, tmp_path):
    recording = desk.make_recording(
        tmp_path / "take-1",
        recipe={"name": "tea", "graph_hash": "abc123", "order": [7, 4], "seed": 11, "source": "tea.json"},
    )
    desk.choose(recording, {7: "Boil water", 4: "Add sugar"})
    desk.note(recording, "done", 3.0, op_id="a", node=7, text="Boil water")
    fields = {"node": 4, "categories": [4], "description": "two spoons"}
    desk.note(recording, "error", 6.0, op_id="b", error_id="b", fields=fields, text="Add sugar")
    desk.note(recording, "done", 7.0, op_id="c", node=4, text="Add sugar")
    desk.note(recording, "undo", 8.0, op_id="d", undoes="c", undone_kind="done")
    desk.note(recording, "rate_question", 3600.0, op_id="e")
    page = report_of(recording)
    (done, undone) = [shape for shape in page.lanes()["event"] if "event" in shape.get("class", "")][:2]
    end_s = 1.01 * 9.95
    assert share(done["x"]) == pytest.approx(3.0 / end_s, abs=1e-3)
    assert share(undone["x"]) == pytest.approx(7.0 / end_s, abs=1e-3)
    assert undone["class"] == "event undone"
    assert "rate_question" in page.text, "work at the desk is listed, and stretches no axis"
    for words in (
        "abc123",
        "seed 11",
        "1. Boil water 0:03.0 none",
        "2. Add sugar not done Technique, two spoons",
    ):
        assert words in page.text
    assert "done, Add sugar (taken back)" in page.text


def test_what_was_done_again_is_not_taken_back(desk, report_of, tmp_path):
    """As the app reduces it: an undo that was itself taken back takes back nothing, all lines of it."""
    recording = desk.make_recording(tmp_path / "take-1", recipe={"name": "tea", "order": [7, 4]})
    texts = {7: "Boil water", 4: "Add sugar"}
    desk.choose(recording, texts)
    for at_s, op_id, node in ((3.0, "a", 7), (4.0, "b", 4)):
        desk.note(recording, "done", at_s, op_id=op_id, node=node, text=texts[node])
    desk.note(recording, "undo", 5.0, op_id="u", undoes="a", undone_kind="done")
    desk.note(recording, "undo", 5.0, op_id="u.1", undoes="b", undone_kind="done")
    assert "1. Boil water not done" in report_of(recording).text
    desk.note(recording, "undo", 6.0, op_id="v", undoes="u", undone_kind="undo")
    page = report_of(recording)
    for words in ("1. Boil water 0:03.0", "2. Add sugar 0:04.0"):
        assert words in page.text
    assert "done, Boil water (taken back)" not in page.text


def test_steps_are_listed_as_cooked_with_the_numbers_of_the_plan(desk, report_of, tmp_path):
    """Steps 1 and 2 are planned the other way round, step 3 is left out; the corrected category counts."""
    recording = desk.make_recording(tmp_path / "take-1")
    early = {"node": 4, "before": 7, "categories": [2], "text": "Add sugar first"}
    left_out = {"node": 9, "categories": [6]}
    desk.choose(recording, {7: "Boil water", 4: "Add sugar", 9: "Stir", 5: "Serve"})
    for error_id, fields in (("p", early), ("q", left_out)):
        desk.note(recording, "plan_error", 0.8, op_id=error_id, error_id=error_id, fields=fields)
    for at_s, node in ((3.0, 5), (4.0, 4), (5.0, 7)):
        desk.note(recording, "done", at_s, op_id=f"d{node}", node=node)
    desk.note(recording, "error", 5.5, op_id="e", error_id="e", fields={"node": 7, "categories": [4]})
    desk.note(recording, "edit_error", 9.0, op_id="f", error_id="e", fields={"categories": [3]})
    text = report_of(recording).text
    lines = (
        "3. Serve 0:03.0 none",
        "1. Add sugar first 0:04.0 Order",
        "2. Boil water 0:05.0 Timing",
        "Stir not done Missing step",
    )
    places = [text.find(line) for line in lines]
    assert places == sorted(places)
    assert -1 not in places
    assert "Technique" not in text


def test_events_say_in_which_pictures_they_are(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1", {"hololens/pv": [0.25 + n / 30 for n in range(200)]})
    desk.note(recording, "error", 3.0, op_id="a", category_name="Timing")
    desk.note(recording, "error", 9.5, op_id="b", category_name="Order")
    synchronize(recording)
    text = report_of(recording).text
    assert "Timing tablet, ± 2.0 ms; picture hololens/pv 82 (± 3 ms)" in text
    assert "Order tablet, ± 2.0 ms" in text
    assert text.count("picture hololens/pv") == 1


def test_a_hostile_recording_writes_only_text(desk, report_of, tmp_path):
    recording = desk.make_recording(
        tmp_path / "take-1",
        place=EVIL,
        pseudonym=EVIL,
        consent=EVIL,
        problems=[EVIL],
        recipe={"name": EVIL, "graph_hash": EVIL, "order": [1], "seed": EVIL, "source": EVIL},
        software={EVIL: EVIL},
    )
    manifest = json.loads((recording / "recording.json").read_text())
    manifest["devices"]["hololens"]["version"] = EVIL
    manifest["devices"][EVIL.replace("/", "")] = {"kind": EVIL, "name": EVIL}
    manifest["streams"]["hololens/accelerometer"]["format"] = {"codec": EVIL, "loses": [EVIL]}
    manifest["streams"]["hololens/" + "<b>"] = {"device": EVIL, "nominal_hz": 1.0}
    write_json(recording / "recording.json", manifest)
    desk.note(recording, EVIL[:20], 1.0, text=EVIL, note=EVIL)
    desk.note(recording, "error", 2.0, text=EVIL, category_name=EVIL, step=1)
    (recording / "sync" / "alignment").mkdir(parents=True)
    body = {
        "schema": "alignment/1",
        "source": EVIL,
        "status": "not_aligned",
        "reasons": [EVIL],
        "version": EVIL,
    }
    write_json(recording / "sync" / "alignment" / "gopro.json", body | {"thresholds": {EVIL: EVIL}})
    page = report_of(recording)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "b", "iframe", "link", "object"}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert page.loads() == []
    assert page.badly_closed == []


def test_a_damaged_file_is_named_and_the_rest_is_shown(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1", {"hololens/accelerometer": desk.steady(12)})
    manifest = json.loads((recording / "recording.json").read_text())
    manifest["streams"]["hololens/gyroscope"] = {"device": "hololens", "nominal_hz": 20.0}
    write_json(recording / "recording.json", manifest)
    for number, (start, end) in enumerate(((0, 3), (3, 5), (5, 10)), start=1):
        rows = desk.packets(desk.steady(20, start, end), first=20 * start)
        path = desk.store(recording, "hololens/gyroscope", rows, number)
        if number == 2:
            path.write_bytes(path.read_bytes()[:700])
    page = report_of(recording)
    assert "Could not be read" in page.text
    assert "hololens/gyroscope/000002.h5" in page.text
    assert "FAIL" in page.text
    (gap,) = [shape for shape in page.lanes()["hololens/gyroscope"] if shape.get("class") == "gap"]
    assert share(gap["x"]) == pytest.approx(2.95 / (1.01 * 9.95), abs=1e-3)
    assert share(gap["width"]) == pytest.approx(2.05 / (1.01 * 9.95), abs=1e-3)
    assert "damaged file hololens/gyroscope/000002.h5" in page.text
    assert "hololens/accelerometer from 0:00.0" in str(page.elements)


def test_events_that_are_damaged_are_shown_up_to_the_damage(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1")
    for at_s in (1.0, 2.0, 3.0):
        desk.note(recording, "done", at_s, text=f"step-{at_s:g}")
    log = recording / "events" / "tablet.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"text": "step-2"', b'"text": "step-9"'))
    text = report_of(recording).text
    assert "events/tablet.jsonl" in text
    assert "step-1" in text
    assert "step-3" not in text
    assert "The recipe cannot be shown" in text


def test_an_open_recording_without_anything_is_a_page_too(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1", {"hololens/pv": []}, state="recording", stopped=None)
    for path in (recording / "clock" / "hololens").iterdir():
        path.unlink()
    text = report_of(recording).text
    assert "never closed" in text
    assert "hololens/pv was armed and holds no packet" in text
    assert "No recipe was chosen" in text
    assert "No event was noted" in text
    assert "No pictures were recorded" in text


def test_without_probes_times_come_from_arrival_and_it_is_said(desk, report_of, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1")
    for path in (recording / "clock" / "hololens").iterdir():
        path.unlink()
    page = report_of(recording)
    assert "no clock probes: times are from the arrival of packets" in page.text
    (gap,) = [shape for shape in page.lanes()["hololens/gyroscope"] if shape.get("class") == "gap"]
    assert share(gap["x"]) == pytest.approx(4.0 / (1.01 * 9.95), abs=1e-3)


def test_a_camera_without_alignment_lies_where_its_shutter_was(desk, report_of, tmp_path):
    recording = desk.make_recording(
        tmp_path / "take-1",
        devices={"hololens": {"kind": "hololens"}, "gopro": {"kind": "gopro", "model": "HERO12 Black"}},
    )
    (recording / "gopro").mkdir()
    (recording / "gopro" / "GX010001.MP4").write_bytes(b"no film at all")
    on, off = (
        {"before_host_ns": desk.host_ns(s), "after_host_ns": desk.host_ns(s), "observed_host_ns": None}
        for s in (2.0, 8.0)
    )
    media = {
        "shutter_on": on,
        "shutter_off": off,
        "files": [{"file": "GX010001.MP4", "bytes": 14, "sha256": ""}],
    }
    write_json(recording / "gopro" / "media.json", media)
    page = report_of(recording)
    (bar,) = [s for s in page.lanes()["gopro/GX010001.MP4"] if "camera" in s.get("class", "")]
    assert "unsure" in bar["class"]
    assert share(bar["x"]) == pytest.approx(2.0 / (1.01 * 9.95), abs=1e-3)
    assert share(bar["width"]) == pytest.approx(6.0 / (1.01 * 9.95), abs=1e-3)
    assert "not yet aligned" in page.text
    assert "placed by the shutter" in page.text
    assert "gopro/GX010001.MP4: GX010001.MP4" in page.text


def test_a_handed_in_verification_is_used(desk, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1")
    given = {"status": "PASS", "reasons": [], "streams": {}, "corrupt": [], "recording": "take-1"}
    html = write_report(recording, given).read_text()
    assert "Every stream covers the session" in html


def test_the_command_prints_the_path(desk, tmp_path):
    from kitchensync.sync.commands.sync import report

    recording = desk.make_recording(tmp_path / "take-1")
    result = CliRunner().invoke(report, [str(recording)])
    assert result.exit_code == 0
    assert result.output.strip() == str(recording / "sync" / "report.html")


def test_a_place_that_cannot_be_written_is_named(desk, tmp_path):
    recording = desk.make_recording(tmp_path / "take-1")
    (recording / "sync").write_text("a file stands in the way")
    with pytest.raises(OutputRefused, match="cannot be written"):
        write_report(recording)


def test_a_folder_that_is_no_recording_is_refused(tmp_path):
    with pytest.raises(NotARecording):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())
