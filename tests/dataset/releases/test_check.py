"""`release check`: nothing to say of what was written, and every planted fault is found, its file and place named."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import made_data_sets
import numpy as np
import pytest
from click.testing import CliRunner

from kitchensync.cli import main
from kitchensync.dataset.checks.check import check
from kitchensync.dataset.source.sums import hashes_of, sums_of

WORDS = frozenset({"Basil", "uuid-1", "Zoë Müller"})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data_sets.own_data_set(tmp_path_factory.mktemp("whole") / "set")


@pytest.fixture
def data_set(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "set"))


def seal(folder: Path) -> None:
    """What a careless hand would do: new checksums of faulty files, in both places."""
    card = json.loads((folder / "croissant.json").read_text())
    there = [one for one in card["distribution"] if (folder / one["contentUrl"]).is_file()]
    for one in there:
        one["sha256"] = hashes_of(folder, [one["contentUrl"]])[one["contentUrl"]]
    (folder / "croissant.json").write_text(json.dumps(card | {"distribution": there}))
    names = [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
    (folder / "SHA256SUMS").write_text(sums_of(hashes_of(folder, (n for n in names if n != "SHA256SUMS"))))


def test_what_was_written_is_as_it_must_be(data_set: Path) -> None:
    done = CliRunner().invoke(main, ["release", "check", str(data_set), "--json"])
    said = json.loads(done.stdout)
    assert (done.exit_code, said["status"], said["differences"], said["warnings"]) == (0, "PASS", [], [])
    found = check(data_set, words=WORDS)
    assert (found.differences, found.names) == ([], [])


def replaced(name: str, old: str, new: str, count: int = -1) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, count))

    return plant


def everywhere(old: str, new: str) -> Callable[[Path], None]:
    """The same fault in all files that say the entry, so that they agree."""

    def plant(folder: Path) -> None:
        for path in [*folder.glob("annotation_*/*"), *folder.glob("metadata/*.csv")]:
            path.write_text(path.read_text().replace(old, new))

    return plant


def rewritten(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        (folder / name).write_text(json.dumps(change(json.loads((folder / name).read_text()))))

    return plant


def removed(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def added(name: str, content: bytes) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(
            (folder / name).read_bytes() + content if (folder / name).exists() else content
        )

    return plant


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:900])


def arrays(name: str, capture_ns: Any) -> Callable[[Path], None]:
    def plant(folder: Path) -> None:
        rows = len(capture_ns)
        values = {"frame": np.arange(rows), "bound_ns": np.zeros(rows), "hidden": np.zeros(rows, bool)}
        np.savez(folder / name, **values, fps=np.array([10, 1]), capture_ns=capture_ns)
        linked = json.loads((folder / LINKS).read_text())
        linked["1_1"]["gopro_360p_frames_npz"] = name
        (folder / LINKS).write_text(json.dumps(linked))

    return plant


def shorter(folder: Path) -> None:
    made_data_sets.small_film(folder / FILM, seconds=3.0)


def split_of(change: Callable[[dict[str, list[str]]], dict[str, list[str]]]) -> Callable[[Path], None]:
    return rewritten("data_splits/recordings_data_split_combined.json", change)


TIMES, COMPLETE = "annotation_csv/step_annotations.csv", "annotation_json/complete_step_annotations.json"
LENGTHS, GRAPH, ERRORS = (
    "metadata/video_information.csv",
    "task_graphs/tea.json",
    "annotation_json/error_annotations.json",
)
LINKS, BESIDE, SPLIT = (
    "metadata/download_links.json",
    "kitchensync.jsonl",
    "data_splits/recordings_data_split_combined.json",
)
FILM = made_data_sets.FILM.format("1_1")
FRAMES = FILM.replace(".mp4", "_frames.npz")
RISING = np.arange(50) * 100_000_000

FAULTS: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "another time in one of the files": (replaced(TIMES, '"1.5"', '"1.6"', 1), TIMES, "line 2"),
    "an end behind the film": (everywhere("2.5", "9.5"), ERRORS, "1_1[1]"),
    "an end before the start": (everywhere("2.5", "0.5"), ERRORS, "1_1[1]"),
    "half a step that was not done": (everywhere("2.5", "-1.0"), ERRORS, "1_1[1]"),
    "a step that the graph lacks": (replaced(GRAPH, "Boil-Boil water", "Cook-Cook water"), GRAPH, "1_1[1]"),
    "a graph that is not there": (removed(GRAPH), GRAPH, ""),
    "a graph with a circle": (replaced(GRAPH, "[2, 3]", "[2, 1], [2, 3]"), GRAPH, ""),
    "a graph that is no JSON": (added(GRAPH, b"]"), GRAPH, ""),
    "an id of another form": (everywhere("1_26", "take-2"), ERRORS, "take-2"),
    "an id of another recipe": (everywhere("1_26", "7_26"), ERRORS, "7_26"),
    "a step with another step's text": (
        replaced("annotation_json/step_idx_description.json", "Boil-Boil water", "Fry-Fry"), ERRORS, "1_1[1]"),
    "a category that there is not": (
        replaced("annotation_json/error_category_idx.json", "Other", "Otter"), ERRORS, "1_26[0]"),
    "a file of something else": (added("notes.txt", b"x"), "notes.txt", ""),
    "a link out of the folder": (lambda folder: (folder / "previews/x.jpg").symlink_to("/etc/hostname"),
                                 "previews/x.jpg", ""),
    "a name": (replaced(BESIDE, '"normal"', '"Basil"', 1), BESIDE, "Basil"),
    "a name in a film": (added(FILM, b"uuid-1"), FILM, "uuid-1"),
    "a name as JSON writes it": (
        replaced(LINKS, '"gopro_360p"', '"gopro_Zo\\u00eb M\\u00fcller"', 1), LINKS, "Zoë Müller"),
    "a place in a film": (added(FILM, b"DEVCGPS5l\x14\x00\x12"), FILM, "a GPS record"),
    "a film that does not decode": (cut(FILM), FILM, ""),
    "a film that is too short": (shorter, FILM, "30 pictures"),
    "a film of no recording": (added(FILM.replace("1_1", "9_9"), b"x"), FILM.replace("1_1", "9_9"), ""),
    "a film without a key": (rewritten(LINKS, lambda links: {**links, "1_1": {}}), LINKS, FILM),
    "a key without a film": (removed(FILM), LINKS, "1_1 gopro_360p"),
    "times that do not rise": (arrays(FRAMES, capture_ns=np.r_[RISING[:49], 3]), FRAMES, "row 49"),
    "a picture without a time": (arrays(FRAMES, capture_ns=RISING[:49]), FILM, "the times of 49"),
    "arrays of Python objects": (arrays(FRAMES, capture_ns=np.array([{}], object)), FRAMES, "plain arrays"),
    "a recording in two parts": (
        split_of(lambda parts: {**parts, "test": [*parts["test"], *parts["train"][:1]]}), SPLIT, "in 2"),
    "a recording in no part": (split_of(lambda parts: {**parts, "train": []}), SPLIT, "none"),
    "a recording of no set in a part": (split_of(lambda parts: {**parts, "val": ["9_9"]}), SPLIT, "9_9"),
    "an error among the normal ones": (
        rewritten("data_splits/recordings_data_split_normal.json", lambda parts: {**parts, "val": ["1_26"]}),
        "data_splits/recordings_data_split_normal.json", "1_26"),
    "a kitchen of the test part in training": (
        added("data_splits/environment_data_split_combined.json",
              b'{"train": ["1_1", "1_26"], "val": ["1_2"], "test": ["1_27"]}'),
        "data_splits/environment_data_split_combined.json", "train and test"),
    "a kitchen that disagrees": (replaced(LENGTHS, "1_1,1,", "1_1,4,"), LENGTHS, "1_1"),
    "minutes that disagree": (replaced(LENGTHS, "0.08", "0.80", 1), LENGTHS, "1_1"),
    "a recording without its row": (replaced(LENGTHS, "1_26,", "1_99,"), LENGTHS, "1_26"),
    "an average that is none": (
        replaced("annotation_csv/average_segment_length.csv", '"1.5"', '"1.7"'),
        "annotation_csv/average_segment_length.csv", "recipe 1"),
    "a card that is not there": (removed("croissant.json"), "croissant.json", ""),
    "a README without its head": (replaced("README.md", "---\n", "", 1), "README.md", "line 1"),
    "a licence that is not there": (removed("LICENSE"), "LICENSE", ""),
    "an entry without its line": (lambda folder: (folder / BESIDE).write_text(
        "".join((folder / BESIDE).read_text().splitlines(keepends=True)[:-1])), BESIDE, "1_27[1]"),
    "a line of no entry": (replaced(BESIDE, '"entry": 1,', '"entry": 7,', 1), BESIDE, "line 3"),
}  # fmt: skip
UNSEALABLE = {"a card that is not there"}


def said_of(found: Any) -> list[str]:
    """Each finding as one text: file, place and what was found."""
    return [json.dumps(one, ensure_ascii=False) for one in found.differences + found.names]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_its_file_and_place_named(data_set: Path, fault: str) -> None:
    plant, file, where = FAULTS[fault]
    plant(data_set)
    if fault not in UNSEALABLE:
        seal(data_set)
    found = check(data_set, words=WORDS)
    named = [text for text in said_of(found) if f'"file": "{file}"' in text and where in text]
    assert named, said_of(found)


def test_a_flipped_bit_anywhere_is_found_by_the_checksums(data_set: Path) -> None:
    for path in sorted(p for p in data_set.rglob("*") if p.is_file() and p.name != "SHA256SUMS"):
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if content else b"x")
        name = path.relative_to(data_set).as_posix()
        assert any(one["file"] == name for one in check(data_set).differences), name
        path.write_bytes(content)
    assert check(data_set).differences == []


@pytest.mark.slow
def test_known_flaws_are_warnings_in_a_published_set_and_differences_where_a_file_was_changed(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, out = shared_data("captaincook4d"), tmp_path / "out"
    run = CliRunner().invoke
    assert run(main, ["release", "captaincook4d", str(folder), "--out", str(out)]).exit_code == 0
    for more in ([], ["--against", str(folder)]):
        done = run(main, ["release", "check", str(out), *more, "--json"])
        said = json.loads(done.stdout)
        assert (done.exit_code, said["status"], said["differences"]) == (0, "WARN", [])
        text = "\n".join(said["warnings"])
        contradicting = ("1_136[", "1_36[", "2_26[")
        assert all(f"{ERRORS} {one}" in text for one in contradicting)
        assert sum(line.startswith(LENGTHS) and "person" in line for line in said["warnings"]) == 14
        assert sum(line.startswith("annotation_csv/average_segment") for line in said["warnings"]) == 2
    assert run(main, ["release", "check", str(out), "--strict"]).exit_code == 1
    for path in out.glob("annotation_*/*"):
        path.write_text(
            path.read_text().replace("Microwave-Microwave for 1.5 minutes", "Microwave-Microwave it")
        )
    seal(out)
    said = json.loads(run(main, ["release", "check", str(out), "--against", str(folder), "--json"]).stdout)
    assert said["status"] == "FAIL"
    assert any(one["where"].startswith("1_136[") for one in said["differences"])


def test_a_step_that_overlaps_its_own_repeat_is_a_flaw(tmp_path: Path) -> None:
    from kitchensync.task_graphs.formats.annotations import AnnotatedRecording, Entry

    entries = (Entry(1, "Do-Do 1", 1.0, 4.0), Entry(1, "Do-Do 1", 3.0, 5.0))
    made_data_sets.write(tmp_path, [AnnotatedRecording("1_1", 1, "Tea", 1, 1, entries)])
    graph: dict[str, Any] = {"steps": {"0": "START", "1": "Do-Do 1", "2": "END"}, "edges": [[0, 1], [1, 2]]}
    (tmp_path / "task_graphs").mkdir()
    (tmp_path / GRAPH).write_text(json.dumps(graph))
    (tmp_path / BESIDE).write_text("")
    assert any("at the same time" in text for text in said_of(check(tmp_path)))
    (tmp_path / BESIDE).unlink()
    warned = [line for line in check(tmp_path).warnings if "at the same time" in line]
    assert len(warned) == 1
    assert "1_1[0] and [1]" in warned[0]
    graph["steps"] |= {"2": "Do-Do 1", "3": "END"}  # now they may be two steps of one text
    graph["edges"] = [[0, 1], [0, 2], [1, 3], [2, 3]]
    (tmp_path / GRAPH).write_text(json.dumps(graph))
    assert not any("at the same time" in line for line in check(tmp_path).warnings)


def test_a_check_tells_how_far_it_is_by_the_bytes_of_films(data_set: Path) -> None:
    told: list[tuple[str, int, int]] = []
    check(data_set, tell=lambda *one: told.append(one))
    films = sorted((data_set / "captain_cook_4d").rglob("*.mp4"))
    sizes = [film.stat().st_size for film in films]
    assert [name for name, _, _ in told] == [film.relative_to(data_set).as_posix() for film in films]
    assert [done for _, done, _ in told] == [sum(sizes[:n]) for n in range(len(sizes))]
    assert {total for _, _, total in told} == {sum(sizes)}


@pytest.mark.parametrize("shape", [(10**15,), (40_000_000,)])
def test_arrays_that_would_fill_the_memory_are_no_plain_arrays(
    data_set: Path, shape: tuple[int, ...]
) -> None:
    arrays(FRAMES, RISING)(data_set)  # named by the links
    with (
        zipfile.ZipFile(data_set / FRAMES, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("x.npy", "w") as member,
    ):
        np.lib.format.write_array_header_1_0(member, {"descr": "<i8", "fortran_order": False, "shape": shape})
        for _ in range(20 if shape[0] < 10**9 else 0):
            member.write(bytes(16_000_000))
    (said,) = (one for one in check(data_set).differences if "plain arrays" in one["got"])
    assert said["file"] == FRAMES


def test_a_film_of_pictures_beyond_all_cameras_is_not_decoded(
    data_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kitchensync.sensors.gopro.files.media.MOST_PIXELS", 100)
    assert FILM in {
        one["file"] for one in check(data_set).differences if one["want"] == "a film that decodes"
    }
