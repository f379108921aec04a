"""Data sets and videos of others are data: none hangs a command, fills the memory or opens another file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from types import SimpleNamespace

import av
import made_data_sets
import numpy as np
import pytest
from click.testing import CliRunner

import kitchensync as ks
from kitchensync.cli import main
from kitchensync.dataset.checks import check_cards
from kitchensync.dataset.checks.release_faults import ReleaseFaults
from kitchensync.dataset.data_set_cards import download_data_set
from kitchensync.dataset.films.film_lanes import sound_levels
from kitchensync.dataset.source.data_set import BESIDE, LINKS
from kitchensync.dataset.source.source_films import TIMES
from kitchensync.dataset.source.sums import read_sums
from kitchensync.sensors.stream import record_of
from kitchensync.storage.exports import arrays_file
from kitchensync.sync.errors import BadArrays
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotations import COMPLETE, ERRORS, VIDEOS
from kitchensync.task_graphs.formats.graph_files import read_bytes


def test_a_pipe_where_an_annotation_file_is_expected_is_refused_at_once(tmp_path):
    (tmp_path / COMPLETE).parent.mkdir(parents=True)
    (tmp_path / COMPLETE).write_text("{}")
    os.mkfifo(tmp_path / ERRORS)
    answered = CliRunner().invoke(main, ["release", "stats", str(tmp_path)])
    assert answered.exit_code == 1
    assert "a pipe, not a file" in answered.stderr
    assert len(answered.stderr.splitlines()) == 1


def test_a_device_and_a_large_file_are_refused_before_reading(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    for path, why in (("/dev/zero", "a device, not a file"), (tmp_path / "large", "at most 100 are read")):
        with pytest.raises(BadGraph, match=why):
            read_bytes(tmp_path / path, most_bytes=100)


def test_an_array_that_unpacks_to_far_more_than_its_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays_file, "ALWAYS_TAKEN", 1 << 10)
    np.savez_compressed(tmp_path / "bomb.npz", vinyl_ns=np.zeros(1 << 20), capture_ns=np.zeros(1 << 20))
    with pytest.raises(BadArrays, match="unpacks to"):
        ks.align(tmp_path / "bomb.npz", tmp_path / "bomb.npz")


def test_a_list_of_other_files_is_no_film(tmp_path):
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXTINF:1,", "secret.wav", "#EXT-X-ENDLIST"]
    (tmp_path / "film.mp4").write_text("\n".join(lines) + "\n")
    with pytest.raises((av.FFmpegError, OSError)):
        sound_levels(tmp_path / "film.mp4", 1.0)


@pytest.mark.parametrize("name", ["/etc/hostname", "../secret", "link", 5, None, ["a"], "[" * 10])
def test_a_card_names_no_file_outside_of_its_data_set(tmp_path, name):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    card = {"distribution": [{"contentUrl": name, "sha256": "0" * 64}]}
    (folder / check_cards.CROISSANT).write_text(json.dumps(card))
    checked = SimpleNamespace(folder=folder, sums={}, faults=ReleaseFaults())
    check_cards._croissant(checked, folder / check_cards.CROISSANT)
    (difference,) = checked.faults.differences
    assert hashlib.sha256(b"secret").hexdigest() not in str(difference)


def test_a_download_writes_through_no_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "q").symlink_to(outside)
    said = download_data_set.get(download_data_set.Visit(), "http://127.0.0.1:9/", "q/b", "0" * 64, folder)
    assert "reached by a link" in said
    assert not list(outside.iterdir())
    (folder / "a").write_text("a file")
    assert "File exists" in download_data_set.get(
        download_data_set.Visit(), "http://127.0.0.1:9/", "a/b", "0" * 64, folder
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return made_data_sets.own_data_set(tmp_path_factory.mktemp("elsewhere") / "base", count=2)


@pytest.fixture
def data_set(base, tmp_path):
    shutil.copytree(base, tmp_path / "set")
    return tmp_path / "set"


def ran(*words):
    answered = CliRunner().invoke(main, list(map(str, words)))
    assert answered.exception is None or isinstance(answered.exception, SystemExit), answered.exception
    return answered


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("lacking", odd) for odd in (5, [5], {}, [{"said": 5, "entries": [1]}], [{"said": "x"}], None)),
        *(("recording_id", odd) for odd in ([], {}, 5, None)),
        *(("hidden_s", odd) for odd in (5, [[1]], [["a", "b"]])),
        ("alignment", [{"gyroscopes_within_ms": "x", "pictures_within_ms": None}]),
    ],
)
def test_a_line_of_facts_of_another_form_is_named(data_set, key, value):
    lines = (data_set / BESIDE).read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), key: value})
    (data_set / BESIDE).write_text("\n".join(lines))
    for command in ("stats", "check"):
        answered = ran("release", command, data_set)
        assert answered.exit_code == 1
        assert f"{BESIDE}" in answered.output
        assert "line 1" in answered.output


def test_annotations_of_too_many_values_are_refused_before_they_are_made(data_set):
    (data_set / COMPLETE).write_text(f"[{'{},' * 2_000_000}0]")
    answered = ran("release", "stats", data_set)
    assert (answered.exit_code, "more than 1000000 values" in answered.stderr) == (1, True)


def film_table(folder, **changed):
    taken = np.arange(50) * 100_000_000
    columns = {"capture_ns": taken, "hidden": np.zeros(50, bool), "fps": np.array([10, 1])}
    columns |= {"frame": np.arange(50), "bound_ns": np.zeros(50)}
    np.savez(folder / TIMES.format("1_1"), **columns | changed)
    link_table(folder)


def link_table(folder):
    """Name the table of a film in the links of its recording."""
    links = json.loads((folder / LINKS).read_text())
    links["1_1"]["gopro_360p_frames_npz"] = TIMES.format("1_1")
    (folder / LINKS).write_text(json.dumps(links))


@pytest.mark.parametrize(
    "changed",
    [
        *({"fps": np.array(fps)} for fps in ([30, 0], [0, 1], [-30, 1], [30], ["a", "b"], 30)),
        *({"hidden": np.array(odd)} for odd in (0, ["a"], [True], np.zeros(50), np.zeros((50, 2), bool))),
        *(
            {"capture_ns": np.array(odd)}
            for odd in (0, ["a"] * 50, np.zeros((50, 2), np.int64), np.zeros(50))
        ),
    ],
    ids=range(15),
)
def test_a_table_of_pictures_of_another_form_is_refused(data_set, tmp_path, changed):
    film_table(data_set)
    words = ["export", "frames", data_set, "--every", "10", "--out", tmp_path / "out"]
    assert ran(*words).exit_code == 0
    film_table(data_set, **changed)
    answered = ran(*words, "--force")
    assert answered.exit_code == 1
    assert "is not a table of frames" in answered.stderr
    checked = ran("release", "check", data_set, "--json")
    differences = json.loads(checked.stdout)["differences"]
    if "capture_ns" in changed:
        assert [one for one in differences if one["want"] == "times that hold"], differences


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_table_that_cannot_be_unpacked_is_refused(data_set, tmp_path, compression):
    path = data_set / TIMES.format("1_1")
    with zipfile.ZipFile(path, "w", compression) as file, file.open("fps.npy", "w") as member:
        np.lib.format.write_array(member, np.random.default_rng(1).random(99))
    content = bytearray(path.read_bytes())
    content[50:70] = bytes(20)
    path.write_bytes(content)
    link_table(data_set)
    answered = ran("export", "frames", data_set, "--out", tmp_path / "out")
    assert (answered.exit_code, "is not a table of frames" in answered.stderr) == (1, True)
    assert "plain arrays" in ran("release", "check", data_set).output


def test_arrays_that_unpack_to_too_much_together_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays_file, "ALWAYS_TAKEN", 1 << 20)
    path = tmp_path / "many.npz"
    np.savez_compressed(path, **{f"a{number}": np.zeros(1 << 19, np.uint8) for number in range(4)})
    with pytest.raises(ValueError, match="unpacks to"):
        list(arrays_file.each_array(path))


def test_a_pipe_holds_no_arrays_and_no_sums(data_set):
    path = data_set / TIMES.format("1_1")
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a file"), arrays_file.open_arrays(path):
        pass
    (data_set / "SHA256SUMS").unlink()
    os.mkfifo(data_set / "SHA256SUMS")
    assert "no file" in ran("release", "check", data_set).output


def test_a_record_that_numpy_cannot_parse_names_none():
    assert record_of({"record": [["x", "(,)f4"]]}) is None


@pytest.mark.parametrize(
    ("column", "cell"), [(1, "north"), (2, ""), (4, "nan"), (4, "1e999"), (4, "\x1b[2J")]
)
def test_a_cell_that_is_no_number_is_named(data_set, column, cell):
    rows = [line.split(",") for line in (data_set / VIDEOS).read_text().splitlines()]
    rows[1][column] = cell
    (data_set / VIDEOS).write_text("".join(",".join(row) + "\n" for row in rows))
    answered = ran("release", "stats", data_set)
    assert (answered.exit_code, f"{VIDEOS}: line 2: no kitchen" in answered.stderr) == (1, True), (
        answered.output
    )
    assert VIDEOS in ran("release", "check", data_set).output


@pytest.mark.parametrize("to", ["SHA256SUMS", "loop", "/etc/hostname"])
def test_a_link_is_no_file_of_a_data_set(data_set, to):
    path = data_set / "data_splits" / "recordings_data_split_combined.json"
    path.unlink()
    path.symlink_to(path if to == "loop" else data_set / to)
    assert ran("release", "check", data_set).exit_code == 1
    with pytest.raises(BadGraph, match="is not there"):
        read_sums(data_set)
