"""Folders of published annotations: into the log, into the desk's list, and back byte for byte."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import at_the_desk, chromium
from click.testing import CliRunner
from derived_tables import dump
from folder_contents import holding
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_runs import examples
from screens import fit_to_be_shown

from kitchensync.cli import main
from kitchensync.recipe_app.exchange.published import (
    category_of,
    check_names,
    collections,
    give_back,
    take_in,
)
from kitchensync.recipe_app.store import oplog, projections, tables
from kitchensync.recipe_app.store.app_records import AppRecords
from kitchensync.recipe_app.store.database import Database
from kitchensync.recipe_app.web.door.access import LOGIN_HEADER
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.annotation_files import format_annotations
from kitchensync.task_graphs.formats.annotations import CATEGORIES as CATEGORY_FILE
from kitchensync.task_graphs.formats.annotations import (
    ERRORS,
    SPLITS,
    AnnotatedRecording,
    Annotations,
    Entry,
    TaggedError,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
CATEGORIES = {"Preparation Error": 1, "Order Error": 3, "Missing Step": 7, "Other": 8}


def tree(folder: Path) -> dict[str, bytes]:
    """The files of the form below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob("*/*.*")}


@pytest.mark.promise("A data set is released, checked, and equal to the published one")
def test_the_published_recordings_come_in_show_and_go_out_byte_for_byte(
    kitchen: Any, shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder, run = shared_data("captaincook4d"), CliRunner().invoke
    data = ["--data", str(kitchen.data), "--json"]
    done = run(main, ["annotations", "import", str(folder), *data])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["recordings"] == 252
    desk = kitchen.desk("researcher")
    page = "".join(desk.get(f"/desk?page={number}").text for number in (1, 2, 3)).lower()
    names = json.loads((folder / "annotation_json/complete_step_annotations.json").read_text())
    assert len(names) == 252
    shown = [f"{body['activity_name']} {name}".replace("_", " ").lower() for name, body in names.items()]
    assert [name for name in shown if name not in page] == []
    out = tmp_path / "out"
    assert run(main, ["annotations", "export", "--out", str(out), *data]).exit_code == 0
    assert tree(out) == tree(folder)
    held = kitchen.tools.records.ops(next(iter(collections(kitchen.tools.records))))[0]["body"]
    assert {path.partition("/")[0] for path in held["as_they_stand"]} == {
        "task_graphs"
    }  # all else is made anew
    rows = kitchen.tools.records.rows(tables.recording)
    entries = {f"{body['activity_name']} {name}": body["steps"] for name, body in names.items()}
    for row in rows:
        steps = entries[row["recipe"]]
        assert (row["steps"], row["steps_done"]) == (len(steps), sum(s["start_time"] >= 0 for s in steps))
    assert sum(row["errors"] > 0 for row in rows) == sum(
        any(step["has_errors"] for step in steps) for steps in entries.values()
    )
    found = {path.stem: path.read_bytes() for path in (folder / "task_graphs").glob("*.json")}
    desk = kitchen.desk("researcher")
    assert {name: desk.get(f"/api/v1/desk/recipes/{name}/export").content for name in found} == found
    assert kitchen.choose(recipe="ramen")["ops"][0]["body"]["title"] == "Ramen"
    again = json.loads(run(main, ["annotations", "import", str(folder), *data]).stdout)
    assert (again["new"], again["recipes"]) == (0, [])
    judged_as_published(kitchen, rows, json.loads((folder / "expected.json").read_text()))


@pytest.mark.parametrize("name", ["LICENSE-of-ours", "annotation_csv/more.csv", "metadata/notes.txt"])
def test_what_a_link_in_a_folder_leads_to_is_not_taken_over(
    shared_data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    folder, secret, run = tmp_path / "given", tmp_path / "id_key", CliRunner().invoke
    shutil.copytree(shared_data("captaincook4d"), folder)
    secret.write_text("a secret of this computer")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(secret)
    done = run(main, ["release", "captaincook4d", str(folder), "--out", str(tmp_path / "out")])
    assert (done.exit_code, f"{name}: is a link" in done.stderr) == (1, True), done.stderr
    assert holding(tmp_path / "out", b"a secret") == []


def judged_as_published(kitchen: Any, rows: list[Any], expected: Any) -> None:
    """Every recording is judged against the graph that came with it, as another program has counted."""
    found = [kitchen.tools.judge.against(row) for row in rows]
    totals = expected["totals"]
    assert None not in found
    assert sum(len(one.early) for one in found) == totals["late_edges"]
    assert sum(bool(one.early) for one in found) == totals["recordings_late_edge"]
    assert sum(not one.missing for one in found) == totals["recordings_all_steps_performed"]
    one = next(row["id"] for row, against in zip(rows, found, strict=True) if against.early)
    page = kitchen.desk("researcher").get(f"/desk/recordings/{one}").text
    assert "which it should have waited for" in page
    assert "Nothing was done yet" not in page


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)
seconds = st.one_of(st.just(-1.0), st.integers(0, 900), st.floats(0, 900, allow_nan=False))
errors = st.builds(TaggedError, st.sampled_from([*CATEGORIES]), texts)
entries = st.builds(
    Entry,
    st.integers(0, 400),
    texts,
    seconds,
    seconds,
    st.lists(errors, max_size=3).map(tuple),
    st.none() | texts,
)
recordings = st.builds(
    AnnotatedRecording,
    st.tuples(st.integers(1, 40), st.integers(1, 60)).map(lambda pair: f"{pair[0]}_{pair[1]}"),
    st.integers(1, 30),
    texts,
    st.integers(0, 9),
    st.integers(0, 12),
    st.lists(entries, max_size=5).map(tuple),
)
folders = st.builds(
    Annotations,
    st.lists(recordings, max_size=4, unique_by=lambda one: one.recording_id).map(tuple),
    st.dictionaries(st.integers(0, 400), texts, max_size=4),
    st.just(CATEGORIES),
    st.just((("recording_id", "minutes"), ("1_7", "3"))),
    st.just({"data_splits/person_data_split_normal.json": {"val": ["1_7"], "train": []}}),
    st.none() | st.just('"a"\n"b"\n'),
)
oddities = st.dictionaries(
    st.sampled_from(["annotation_csv/step_annotations.csv", "annotation_json/error_category_idx.json"]),
    st.just("{ }\r\n"),
)


@given(folders, oddities, st.booleans())
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_folder_of_the_form_goes_out_as_it_came(
    database: Database, folder: Annotations, odd: dict[str, str], sparse: bool
) -> None:
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 1_790_000_000_000_000_000)
    files = format_annotations(folder) | {"task_graphs/tea.json": '{"steps": {}}'} | odd
    if sparse:
        files = {path: text for path, text in files.items() if not path.startswith("annotation_csv")}
    taken = take_in(files, "generated", records, actor="p1")
    assert give_back(taken["collection"], records).files == files
    assert take_in(files, "generated", records, actor="p1")["new"] == 0
    with database.reading() as connection:
        assert oplog.first_fault(connection) is None


def test_the_tables_are_what_the_log_says(database: Database) -> None:
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 1_790_000_000_000_000_000)
    done = Entry(3, "Pour", 1.5, 2, (TaggedError("Order Error", "early"), TaggedError("Other", "x")))
    one = AnnotatedRecording("1_7", 1, "Tea", 4, 2, (done, Entry(4, "Sip", -1.0, -1.0)))
    taken = take_in(
        format_annotations(Annotations((one,), {3: "Pour"}, CATEGORIES)), "tea", records, actor="p1"
    )
    with database.writing() as connection:
        before = dump(connection)
        projections.rebuild(connection)
        assert dump(connection) == before
    (row,) = before["recording"]
    assert (row["recipe"], row["steps"], row["steps_done"], row["errors"]) == ("Tea 1_7", 2, 1, 2)
    assert {tuple(json.loads(error["categories"])) for error in before["error"]} == {(2,), (7,)}
    state = records.state(row["id"])
    assert state["steps"]["1"]["runs"] == [{"start": 1_500_000_000, "end": 2_000_000_000}]
    assert collections(records) == {taken["collection"]: "tea"}
    assert category_of("Missing Step") == 6
    assert category_of("Unheard Of") == 7


def test_an_interrupted_import_goes_on_where_it_was(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 1_790_000_000_000_000_000)
    entry = Entry(3, "Pour", 1.5, 2)
    many = tuple(AnnotatedRecording(f"1_{n}", 1, "Tea", 4, 2, (entry,) * 9) for n in range(60))
    files = format_annotations(Annotations(many, {3: "Pour"}, CATEGORIES))
    note, batches = records._note_batch, []

    def interrupted(made: Any) -> int:
        if len(batches) == 1:
            raise KeyboardInterrupt
        batches.append(made)
        return note(made)

    monkeypatch.setattr(records, "_note_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        take_in(files, "tea", records, actor="p1")
    assert collections(records) == {}  # what is not whole is not offered
    monkeypatch.setattr(records, "_note_batch", note)
    taken = take_in(files, "tea", records, actor="p1")
    assert 0 < taken["new"] < taken["operations"]
    assert give_back(taken["collection"], records).files == files
    assert len(records.rows(tables.recording)) == 60


def test_a_researcher_uploads_and_downloads_at_the_desk(kitchen: Any) -> None:
    one = AnnotatedRecording("1_7", 1, "Tea & <b>toast</b>", 4, 2, (Entry(3, "Pour", 1.5, 2),))
    files = format_annotations(Annotations((one,), {3: "Pour"}, CATEGORIES))
    researcher = kitchen.desk("researcher")
    large = {**files, "metadata/notes.csv": "x" * 1_000_000}  # more than any other request may have
    answer = researcher.post("/api/v1/desk/collections", json={"name": "mine", "files": large})
    assert answer.status_code == 200, answer.text
    page = researcher.get("/desk").text
    assert "tea &amp; &lt;b&gt;toast" in page.lower()
    link = f"/api/v1/desk/collections/{answer.json()['collection']}/export"
    assert link in page
    with zipfile.ZipFile(io.BytesIO(researcher.get(link).content)) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == large
    assert researcher.get("/api/v1/desk/collections/absent/export").status_code == 404
    for name in (
        *("../evil.json", "annotation_json/../../evil.json", "/etc/passwd", "task_graphs/.json"),
        *("x.json",),
    ):
        answer = researcher.post(
            "/api/v1/desk/collections", json={"name": "bad", "files": {**files, name: ""}}
        )
        assert answer.status_code == 422
        assert "not a file of a data set" in answer.json()["error"]


def test_a_folder_is_chosen_in_the_browser_and_a_withdrawn_recording_keeps_it_in(
    kitchen: Any, tmp_path: Path
) -> None:
    one = AnnotatedRecording("1_7", 1, "Tea", 4, 2, (Entry(3, "Pour", 1.5, 2),))
    other = AnnotatedRecording("1_8", 1, "Tea", 4, 2, (Entry(3, "Pour", 2.5, 4),))
    files = format_annotations(Annotations((one, other), {3: "Pour"}, CATEGORIES))
    folder = tmp_path / "captaincook4d"
    for path, text in {**files, "README.md": "not of the form"}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    login = kitchen.desk("researcher").headers[LOGIN_HEADER]
    with chromium() as browser:
        page = at_the_desk(browser, kitchen.url, login).page
        page.goto(f"{kitchen.url}/desk")
        for _ in range(2):
            page.get_by_label("Folder").set_input_files(folder)
            with page.expect_navigation():
                page.get_by_role("button", name="Take in").click()
            assert page.get_by_role("row").count() == 3  # the second time nothing happens
        with page.expect_download() as download:
            page.get_by_role("link", name="Download everything").click()
        with zipfile.ZipFile(download.value.path()) as archive:
            assert {name: archive.read(name).decode() for name in archive.namelist()} == files
        page.get_by_role("link", name="Tea 1 7").click()
        page.get_by_role("tab", name="History").click()
        page.locator("#withdraw summary").click()
        fit_to_be_shown(page)
        page.get_by_role("button", name="Yes, withdraw it").click()
        page.get_by_text("Withdrawn by the participant").wait_for()
        assert page.locator("#withdraw").count() == 0
        page.goto(f"{kitchen.url}/desk")
        link = page.get_by_role("link", name="Download everything").get_attribute("href")
        answer = page.request.get(f"{kitchen.url}{link}")
        assert (answer.status, "withdrawn: Tea 1_7;" in answer.json()["error"]) == (409, True)
    out = tmp_path / "out"
    options = ["export", "--out", str(out), "--data", str(kitchen.data), "--json"]
    done = CliRunner().invoke(main, ["annotations", *options])
    assert (done.exit_code, "withdrawn: Tea 1_7;" in done.stdout, out.exists()) == (1, True, False)


def folder_with(old: str = "", new: str = "", **changed: str) -> dict[str, str]:
    """A small folder, one of its texts replaced in all files that say it."""
    step = Entry(3, "Pour", 1.5, 2, (TaggedError("Order Error", "early"),), "Pour it")
    one = AnnotatedRecording("1_7", 1, "Tea", 4, 2, (step,))
    files = format_annotations(Annotations((one,), {3: "Pour"}, CATEGORIES)) | changed
    return {path: text.replace(old, new) if old else text for path, text in files.items()}


@pytest.mark.parametrize("ids", [["coffee_a"], ["P01-03", "P01-02"], ["1_7", "tea", "1_10", "2_1"]])
def test_a_recording_need_not_be_a_number(kitchen: Any, tmp_path: Path, ids: list[str]) -> None:
    many = tuple(AnnotatedRecording(name, 1, "Tea", 4, 2, (Entry(3, "Pour", 1.5, 2),)) for name in ids)
    files = format_annotations(Annotations(many, {3: "Pour"}, CATEGORIES))
    rows = files["annotation_csv/recording_id_step_idx.csv"].splitlines()[1:]
    numbers = [name for name in ("1_7", "2_1", "1_10") if name in ids]  # as 17, 21, 110: the published order
    assert [row.split('"')[1] for row in rows] == [*numbers, *sorted(set(ids) - set(numbers))]
    folder, out = tmp_path / "folder", tmp_path / "out"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    run, data = CliRunner().invoke, ["--data", str(kitchen.data), "--json"]
    assert run(main, ["annotations", "import", str(folder), *data]).exit_code == 0
    assert run(main, ["annotations", "export", "--out", str(out), *data]).exit_code == 0
    assert tree(out) == tree(folder)
    page = kitchen.desk("researcher").get("/desk").text
    assert [name for name in ids if f"Tea {name.replace('_', ' ')}" not in page] == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (folder_with("1.5", "Infinity"), "start_time: not a number of seconds"),
        (folder_with("1.5", "-Infinity"), "start_time: not a number of seconds"),
        (folder_with("1.5", "NaN"), "start_time: not a number of seconds"),
        (folder_with("1.5", "1e300"), "start_time: not a number of seconds"),
        (folder_with("1.5", "9" * 400), "start_time: not a number of seconds"),
        (folder_with("early", "\\ud83d"), "half a character"),
        (folder_with("Pour", "\\uDC00"), "half a character"),
        (folder_with("early", "a\\u0000b"), "a NUL character"),
        (folder_with('"Pour it"', "5"), "modified_description: not a text"),
        (folder_with('"3": "Pour"', '"²": "Pour"'), "²: not a whole number"),
        (folder_with('"3": "Pour"', f'"{"9" * 5000}": "Pour"'), "9: not a whole number"),
        (folder_with("1_7", "a\\nb", **{ERRORS: "[]"}), "a b: not in annotation_json/error_annotations.json"),
        (folder_with(**{CATEGORY_FILE: '["a"]'}), "not an object"),
        (folder_with(**{CATEGORY_FILE: '{"a": "b"}'}), "a: not a whole number"),
        (folder_with(**{SPLITS[0]: "[1]"}), "not an object"),
        (folder_with(**{SPLITS[0]: '{"val": 1}'}), "val: not a list"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(kitchen: Any, files: dict[str, str], said: str) -> None:
    answer = kitchen.desk("researcher").post("/api/v1/desk/collections", json={"name": "odd", "files": files})
    assert (answer.status_code, said in answer.json()["error"]) == (422, True), answer.text
    assert kitchen.tools.records.rows(tables.recording) == []
    assert len(answer.json()["error"]) < 400
    assert "\n" not in answer.json()["error"]


SCRAPS = (
    "Infinity", "-1e300", "1e300", "9" * 400, "-1", "0.5", "null", "true", "[]", "{}", '"x"', '"²"', '"\\ud83d"',
    '"\\ude00"', '"\\ud83d\\ude00"', '"a\\u0000"', '"a\\nb"', "\ufeff", ",", "[" * 3000, '{"1": 1}', '"7": ', "²",
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, str]:
    """A folder of the form in which tokens of one to three files were replaced by scraps."""
    files = format_annotations(draw(folders)) | draw(oddities)
    for path in draw(st.lists(st.sampled_from(sorted(files)), min_size=1, max_size=3, unique=True)):
        tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[-+.\w]+|\s+|.', files[path])
        for at in draw(st.lists(st.integers(0, max(len(tokens) - 1, 0)), min_size=1, max_size=2)):
            tokens[at : at + 1] = [draw(st.sampled_from(SCRAPS))]
        files[path] = "".join(tokens)
    return files


@given(mutated())
@examples(30, suppress_health_check=[*HealthCheck])
def test_a_folder_is_taken_in_or_refused_in_one_line(database: Database, files: dict[str, str]) -> None:
    records = AppRecords(database, now_ns=lambda: 7, utc_ns=lambda: 1_790_000_000_000_000_000)
    outcome: dict[str, str] | str
    try:
        outcome = give_back(take_in(files, "mutated", records, actor="p1")["collection"], records).files
    except BadGraph as error:
        outcome = str(error)
    if isinstance(outcome, str):
        assert "\n" not in outcome
        assert len(outcome) < 400
    else:
        assert outcome == files


def test_the_browser_takes_bytes_as_they_are_or_not_at_all(kitchen: Any, tmp_path: Path) -> None:
    files = folder_with(**{"metadata/notes.csv": "\ufeffa,b\r\n"})
    for path, text in files.items():
        (tmp_path / "mine" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine" / path).write_bytes(text.encode())
    researcher = kitchen.desk("researcher")
    with chromium() as browser:
        page = at_the_desk(browser, kitchen.url, researcher.headers[LOGIN_HEADER]).page
        for content in (b"caf\xe9\n", "\ufeffcafé\n".encode()):
            (tmp_path / "mine/metadata/more.csv").write_bytes(content)
            page.goto(f"{kitchen.url}/desk")
            page.get_by_label("Folder").set_input_files(tmp_path / "mine")
            page.get_by_role("button", name="Take in").click()
            if content.startswith(b"caf"):
                page.get_by_text("more.csv: is not UTF-8; save the file as UTF-8").wait_for()
                assert collections(kitchen.tools.records) == {}
        page.get_by_role("link", name="Download everything").wait_for()
    (collection,) = collections(kitchen.tools.records)
    given_back = give_back(collection, kitchen.tools.records).files
    assert given_back == {**files, "metadata/more.csv": "\ufeffcafé\n"}


def test_what_is_no_such_folder_is_one_line(kitchen: Any, tmp_path: Path) -> None:
    with pytest.raises(BadGraph, match="not a file of a data set"):
        check_names({"annotation_json/a b.json": ""})
    run, data = CliRunner().invoke, ["--data", str(kitchen.data), "--json"]
    done = run(main, ["annotations", "import", str(tmp_path), *data])
    assert done.exit_code == 1
    assert "there is no annotation_json/complete_step_annotations.json" in json.loads(done.stdout)["reason"]
    done = run(main, ["annotations", "export", "--out", str(tmp_path / "out"), *data])
    assert done.exit_code == 1
    assert "no collection" in json.loads(done.stdout)["reason"]
