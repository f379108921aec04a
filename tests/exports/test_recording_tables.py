"""`kitchensync export tables`, read by pandas, agrees with `kitchensync.open`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner, Result
from cooked_recording import DONE_S
from small_recordings import HOST0_NS

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest

pytestmark = pytest.mark.slow
READERS = {"parquet": pandas.read_parquet, "csv": pandas.read_csv}


def run(recording: Path, out: Path, *more: object) -> Result:
    return CliRunner().invoke(main, ["export", "tables", str(recording), "--out", str(out), *map(str, more)])


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_tables_agree_with_reading(cooked: Path, tmp_path: Path, form: str) -> None:
    done = run(cooked, tmp_path / "out", *(["--csv"] if form == "csv" else []), "--json")
    assert done.exit_code == 0, done.output
    folder = tmp_path / "out" / "take1"
    about = json.loads((folder / "about.json").read_text())
    assert json.loads(done.stdout)["recordings"] == [about]
    assert all(f"{name}.{form}" in table["files"] for name, table in about["tables"].items())
    tables = {name: READERS[form](folder / f"{name}.{form}") for name in about["tables"]}
    assert {name: len(table) for name, table in tables.items()} == {
        name: table["rows"] for name, table in about["tables"].items()
    }
    with ks.open(cooked) as rec:
        turning = tables["hololens/gyroscope"]
        np.testing.assert_array_equal(turning["session_s"], rec.gyroscope.times)
        np.testing.assert_array_equal(turning["host_ns"], rec.gyroscope.times_ns)
        utc = pandas.to_datetime(turning["utc"])
        assert str(utc.dt.tz) == "UTC", "without a zone Python would assume local time"
        np.testing.assert_array_equal(utc.dt.tz_localize(None).to_numpy(), rec.gyroscope.utc)
        np.testing.assert_allclose(turning["utc_bound_ns"] / 1e9, rec.utc_bound(rec.gyroscope.times))
        columns = ["x_rad_per_s", "y_rad_per_s", "z_rad_per_s"]
        np.testing.assert_allclose(turning[columns], rec.gyroscope.values, rtol=1e-6)
        film = tables["gopro/video"]
        np.testing.assert_allclose(film["session_s"], rec.gopro.times)
        np.testing.assert_allclose(film["bound_s"], rec.gopro.bounds_s)
        assert film["picture"].tolist() == list(range(len(rec.gopro)))
        head = tables["hololens/head"]
        np.testing.assert_allclose(head[["x_m", "y_m", "z_m"]], rec.head.values[:, :3, 3])
        front = tables["hololens/pv"]
        assert np.isnan(front["x_m"][50]), "not tracked"
        assert front["x_m"][51] == 51
        assert tables["hololens/hands"]["left_palm_x_m"].isna().all()
        assert tables["steps"]["end"].tolist() == pytest.approx(rec.steps["end"].tolist(), nan_ok=True)
        assert pandas.isna(tables["errors"]["at_s"][0])
        assert tables["errors"]["reported_s"].tolist() == rec.errors["reported_s"].tolist()
        categories = tables["errors"]["categories"]  # a CSV file has no lists
        lists = categories.str.split("; ") if form == "csv" else categories.map(list)
        assert lists.tolist() == rec.errors["categories"].tolist()
        assert tables["events"]["kind"].tolist() == rec.events["kind"].tolist()
        assert [json.loads(body) for body in tables["events"]["body"]] == rec.events["body"].tolist()
    assert about["left_out"].keys() >= {"gopro/audio"}


def test_a_step_is_cut_out_of_every_table(cooked: Path, tmp_path: Path) -> None:
    assert run(cooked, tmp_path / "out", "--step", 2).exit_code == 0
    with ks.open(cooked) as rec:
        start, end = rec.steps["start"][1], rec.steps["end"][1]
    assert end - start == pytest.approx(DONE_S[2] - DONE_S[1], abs=0.01)
    for name in ("hololens/gyroscope", "gopro/video", "hololens/pv", "hololens/head"):
        times = pandas.read_parquet(tmp_path / "out/take1" / f"{name}.parquet")["session_s"]
        assert start <= times.min() < start + 0.1, name
        assert end - 0.1 < times.max() < end, name
    assert run(cooked, tmp_path / "more", "--step", 9).exit_code == 1
    assert run(cooked, tmp_path / "more", "--from", 9, "--to", 3).exit_code == 1


@pytest.mark.promise("Nothing leaves without consent; pauses and withdrawals reach every file")
def test_nothing_of_a_pause_is_exported_and_nothing_without_consent(cooked: Path, tmp_path: Path) -> None:
    shutil.copytree(cooked, tmp_path / "take1")
    log = EventLog(tmp_path / "take1", "operator")
    for kind, at_s in (("pause", 9.0), ("resume", 12.5)):
        log.append(kind, host_ns=HOST0_NS + round(at_s * 1e9), uncertainty_ns=0, body={}, op_id=kind)
    assert run(tmp_path / "take1", tmp_path / "out").exit_code == 0
    for path in (tmp_path / "out").rglob("*.parquet"):
        if path.stem not in ("steps", "errors", "events"):
            host_ns = pandas.read_parquet(path)["host_ns"]
            assert len(host_ns) or "magnetometer" in path.name, "only the magnetometer has no samples"
            inside = (host_ns >= HOST0_NS + 9_000_000_000) & (host_ns <= HOST0_NS + 12_500_000_000)
            assert not inside.any(), path.name
    again = run(tmp_path / "take1", tmp_path / "out", "--csv")
    assert (again.exit_code, "--force" in again.output) == (1, True)
    with edit_manifest(tmp_path / "take1") as manifest:
        manifest["consent_scopes"] = ["annotate"]
    refused = run(tmp_path / "take1", tmp_path / "none", "--json")
    assert refused.exit_code == 1
    assert "release_raw" in refused.output
    assert not (tmp_path / "none").exists()


def test_recordings_without_consent_are_left_out_of_a_folder(cooked: Path, tmp_path: Path) -> None:
    for name in ("take1", "take2", "take3"):
        shutil.copytree(cooked, tmp_path / "data" / name)
        with edit_manifest(tmp_path / "data" / name) as manifest:
            manifest["recording"] = name
            if name == "take2":
                manifest["consent_scopes"] = ["annotate"]
    for kind, made in (("tables", "{}/hololens/pv.parquet"), ("mcap", "{}.mcap")):
        out = tmp_path / kind
        args = ["export", kind, tmp_path / "data", "--out", out, "--streams", "hololens/pv", "--json"]
        done = CliRunner().invoke(main, [*map(str, args)])
        assert done.exit_code == 0, done.output
        report = json.loads(done.stdout)
        assert [entry["recording"] for entry in report["recordings"]] == ["take1", "take3"]
        assert "release_raw" in report["left_out"]["take2"]
        assert [(out / made.format(name)).exists() for name in ("take1", "take2", "take3")] == [
            True,
            False,
            True,
        ]
        assert not list(out.rglob("*gyroscope*"))
    unknown = run(tmp_path / "data" / "take1", tmp_path / "none", "--streams", "hololens/nothing")
    assert (unknown.exit_code, "no stream 'hololens/nothing'" in unknown.output) == (1, True)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("kind", ["tables", "mcap", "lerobot"])
def test_two_recordings_of_one_name_are_refused_before_anything_is_written(
    cooked: Path, tmp_path: Path, kind: str
) -> None:
    for folder in ("a", "b"):
        shutil.copytree(cooked, tmp_path / folder / "take1")
    args = ["export", kind, tmp_path / "a" / "take1", tmp_path / "b", "--out", tmp_path / "out", "--force"]
    done = CliRunner().invoke(main, [*map(str, args)])
    assert (done.exit_code, "2 recordings are called take1" in done.output) == (1, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["tables", "mcap", "lerobot"])
@pytest.mark.parametrize("start", ["nan", "inf", "1e308"])
def test_invalid_seconds_are_refused_in_one_line(cooked: Path, tmp_path: Path, kind: str, start: str) -> None:
    args = ["export", kind, cooked, "--out", tmp_path / "out", "--from", start]
    done = CliRunner().invoke(main, [*map(str, args)])
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["tables", "mcap"])
@pytest.mark.parametrize("span", [("--from", "100"), ("--to", "-5")])
def test_a_span_outside_of_the_recording_is_refused_in_one_line(
    cooked: Path, tmp_path: Path, kind: str, span: tuple[str, str]
) -> None:
    args = ["export", kind, cooked, "--out", tmp_path / "out", *span]
    done = CliRunner().invoke(main, [*map(str, args)])
    assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output
    assert "session seconds go from 0 to" in done.output
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_forced_tables_replace_those_of_other_streams(cooked: Path, tmp_path: Path) -> None:
    assert run(cooked, tmp_path / "out", "--streams", "head,pv").exit_code == 0
    assert (tmp_path / "out/take1/hololens/pv.parquet").exists()
    assert run(cooked, tmp_path / "out", "--streams", "head", "--force").exit_code == 0
    assert not (tmp_path / "out/take1/hololens/pv.parquet").exists()
    assert (tmp_path / "out/take1/hololens/head.parquet").exists()
