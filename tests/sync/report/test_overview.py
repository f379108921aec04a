"""The page over many recordings, and `report` on a folder: one that is broken never stops the rest."""

from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.storage.timeline.clock_map import ClockMap
from kitchensync.storage.verify import keep_verdict
from kitchensync.sync.batch.batch import failed
from kitchensync.sync.report.overview import PAGE, refresh_summary, summary_page

MAP = ClockMap(0, 0.0, (1.0, 0.0), (0.0, 60.0)).as_object()


def pair(status, source="gopro/GX010001.MP4", bound=0.1, **more):
    body = {
        "source": source,
        "status": status,
        "reasons": [],
        "warnings": [],
        "sigma": None,
        "evidence": {"gyro": None},
    }
    if status != "not_aligned":
        body |= {
            "map": MAP,
            "epoch_hl2_qpc": 0,
            "sigma": {"bound95_ms": [bound, bound / 2, bound], "total_ms": 15.1},
        }
        body["evidence"] = {"gyro": {"drift_ppm": 12.34}}
    return body | more


def recording(name, status, *pairs, path="", **more):
    return {"recording": name, "status": status, "pairs": list(pairs), "path": str(path), **more}


def test_every_pair_has_its_numbers_and_reasons(tmp_path, page_of):
    bad = pair("not_aligned", "gopro-b/GX010001.MP4", reasons=["<b>other</b> recording"])
    good = pair("aligned", "gopro-a/GX010001.MP4", warnings=["chapter 1 is not here"])
    answer = {
        "recordings": [
            recording("two", "not_aligned", good, bad),
            recording("one", "aligned", pair("aligned")),
        ]
    }
    page = page_of(summary_page(answer, tmp_path))
    assert page.badly_closed == []
    assert page.loads() == []
    for words in (
        "<b>other</b> recording",
        "chapter 1 is not here",
        "0.10 ms",
        "12.3 ppm",
        "± 15.1 ms",
        "no remarks",
    ):
        assert words in page.text
    assert page.text.index("two") < page.text.index("one ", page.text.index("two"))
    assert "1 not aligned" in page.text
    assert "1 aligned" in page.text


def test_links_lead_only_to_pages_that_are_there(tmp_path, page_of):
    (tmp_path / "a" / "sync").mkdir(parents=True)
    (tmp_path / "a" / "sync" / "report.html").touch()
    answer = {
        "recordings": [
            recording("a", "check", pair("check"), path=tmp_path / "a"),
            recording("b", "aligned", path=tmp_path / "b"),
        ]
    }
    page = page_of(summary_page(answer, tmp_path))
    assert page.loads() == ["a/sync/report.html"]
    assert "once kitchensync report" in page.text


def test_an_empty_folder_says_so(tmp_path, page_of):
    page = page_of(summary_page({"recordings": []}, tmp_path))
    assert "There is no recording in this folder." in page.text


def test_a_recording_that_could_not_be_opened_has_a_line(tmp_path, page_of):
    where = tmp_path / "data" / "x"
    page = page_of(summary_page({"recordings": [failed(where, f"{where}: not a recording")]}, tmp_path))
    assert "x: not a recording" in page.text
    assert str(tmp_path) not in page.text


@pytest.fixture
def folder(desk, tmp_path):
    for name in ("a", "b"):
        desk.make_recording(tmp_path / "data" / name)
    (tmp_path / "data" / "broken").mkdir()
    (tmp_path / "data" / "broken" / "recording.json").write_text("{")
    return tmp_path / "data"


@pytest.mark.slow
def test_sync_of_a_folder_prints_a_line_each_and_where_the_summary_is(folder):
    lines = CliRunner().invoke(main, ["sync", str(folder)]).stdout.splitlines()
    assert sorted(line.split()[1] for line in lines[:-1]) == ["broken", "take-1", "take-1"]
    assert lines[-1] == f"summary: {folder / PAGE}"


def test_the_reasons_of_a_warning_about_the_data_are_on_the_page(desk, tmp_path, page_of):
    take = desk.make_recording(tmp_path / "data" / "a")
    keep_verdict(
        take, {"status": "WARN", "reasons": ["pv: 0.4 s missing"], "good_for": ["motion: all of it"]}
    )
    answer = {"recordings": [recording("a", "aligned", pair("aligned"), path=take)]}
    text = page_of(summary_page(answer, take.parent)).text
    assert text.index("pv: 0.4 s missing") < text.index("motion: all of it")


@pytest.mark.slow
def test_report_on_a_folder_goes_on_and_links_the_pages(folder, page_of):
    runner = CliRunner()
    assert runner.invoke(main, ["sync", str(folder)]).exit_code == 1
    assert page_of((folder / PAGE).read_text()).loads() == []
    result = runner.invoke(main, ["report", str(folder)])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert [line.split("/")[-3] for line in result.stdout.split()] == ["a", "b"]
    page = page_of((folder / PAGE).read_text())
    assert sorted(page.loads()) == ["a/sync/report.html", "b/sync/report.html"]
    assert "recording.json cannot be read" in page.text


def test_a_page_made_anew_tells_what_is_not_finished(folder, page_of):
    CliRunner().invoke(main, ["sync", str(folder)])
    shutil.rmtree(folder / "b" / "sync")
    refresh_summary(folder)
    assert "not synchronized yet, or not to its end" in page_of((folder / PAGE).read_text()).text
    (folder / PAGE).unlink()
    refresh_summary(folder)
    assert not (folder / PAGE).exists()
