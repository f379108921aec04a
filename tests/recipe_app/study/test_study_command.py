"""`kitchensync study plan` as a lab uses it: the file, the plan, edited and planned anew from what happened."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from root_folders import ROOT
from small_recordings import write_manifest

from kitchensync.cli import main
from kitchensync.recipe_app.study.calendar_file import calendar, weeks_page
from kitchensync.recipe_app.study.plan_file import PlanEntry
from kitchensync.recipe_app.study.study_file import read_study
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import edit_manifest
from kitchensync.storage.verify.by_life import keep_verdict
from kitchensync.task_graphs.formats.graph_files import read_graph

NOW = datetime(2027, 1, 8, 12, tzinfo=UTC)
"""The Friday before the study begins."""
RECIPES = ROOT / "kitchensync" / "examples" / "recipes"
STUDY = """
goals = [
  {{ recipe = ["tea_and_toast", "fresh_lemonade"], strategy = ["normal", "induced"], count = 2 }},
  {{ recipe = "fresh_lemonade", strategy = "normal", count = 1, person = "Clove" }},
]
[study]
zone = "Europe/Berlin"
begin = 2027-01-11
days = {days}
recipes = "{recipes}"
[rules]
categories = 4
[people.Basil]
hours = ["mon-fri 09:00-17:00"]
[people.Clove]
hours = ["mon 09:00-12:00", "wed-fri 12:00-18:00"]
away = [2027-01-14]
[kitchens.north]
hours = ["mon-fri 08:00-18:00"]
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study file; commands run in it, with relative paths."""
    (tmp_path / "study.toml").write_text(STUDY.format(days=5, recipes=RECIPES))
    monkeypatch.chdir(tmp_path)
    it_is(NOW, monkeypatch)
    return tmp_path


def it_is(now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kitchensync.recipe_app.commands.study._now", lambda: now)


def test_the_study_of_the_page_is_planned_as_the_page_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "plan-a-study.md").read_text(encoding="utf-8")
    command = next(
        line.split()[1:] for line in page.splitlines() if line.startswith("    kitchensync study plan")
    )
    outputs = ("plan.json",)
    words = [str(tmp_path / one) if one in outputs else one for one in command]
    words = [str(ROOT / one) if one.startswith("examples/") else one for one in words]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert all((tmp_path / one).stat().st_size > 0 for one in outputs)
    assert len(json.loads((tmp_path / "plan.json").read_text())["sessions"]) > 0


def plan(*options: str) -> dict[str, Any]:
    done = CliRunner().invoke(main, ["study", "plan", "study.toml", "--out", "plan.json", *options, "--json"])
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    assert json.loads(Path("plan.json").read_text()) == said
    return said


def test_a_plan_has_its_sessions_orders_and_what_is_not_met(lab: Path) -> None:
    said = plan()
    assert len(said["sessions"]) == 9
    assert said["unmet"] == []
    assert len({one["category"] for one in said["sessions"]} - {""}) == 4
    for name in ("tea_and_toast", "fresh_lemonade"):
        graph = read_graph(RECIPES / f"{name}.json")
        orders = [
            one["order"] for one in said["sessions"] if (one["recipe"], one["strategy"]) == (name, "normal")
        ]
        assert len({tuple(order) for order in orders}) == len(orders)  # each a new one
        for order in orders:
            assert sorted(order) == [step.node for step in graph.steps]
            assert all(order.index(u) < order.index(v) for u, v in graph.inner_edges)
    done = CliRunner().invoke(main, ["study", "plan", "study.toml", "--out", "plan.json"])
    assert (done.exit_code, "exists and is not written over" in done.stderr) == (1, True)


def unfolded(text: str) -> list[dict[str, str]]:
    """The events of a calendar file, read by the letter of RFC 5545."""
    assert text.endswith("\r\n")
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    lines = text.replace("\r\n ", "").split("\r\n")
    events: list[dict[str, str]] = []
    for line in lines:
        key, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            events.append({})
        elif events and key not in ("END", "BEGIN", ""):
            events[-1][key] = value.replace("\\,", ",").replace("\\;", ";")
    return events


class Cells(HTMLParser):
    """The words of a page's cells."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def test_the_calendar_and_the_weeks_say_the_same(lab: Path) -> None:
    said = plan()
    entries = [PlanEntry.model_validate(session) for session in said["sessions"]]
    events = unfolded(calendar(entries))
    assert len({one["UID"] for one in events}) == len(events) == len(said["sessions"])
    for one, event in zip(said["sessions"], events, strict=True):
        start = datetime.fromisoformat(one["start"])
        assert event["DTSTART"] == f"{start.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        assert event["DTEND"] == f"{(start + timedelta(minutes=60)).astimezone(UTC):%Y%m%dT%H%M%SZ}"
        assert event["SUMMARY"] == f"{one['person']}: {one['recipe']}, {one['strategy']}"
        assert event["DESCRIPTION"] == one["why"]
    page = Cells()
    page.feed(weeks_page(entries, read_study(lab / "study.toml")[0].zone, "study"))
    times = [f"{datetime.fromisoformat(one['start']):%H:%M} {one['person']}" for one in said["sessions"]]
    assert [word for word in page.words if word in times] == times


def test_locked_sessions_stay_and_two_that_clash_are_refused(lab: Path) -> None:
    first = plan()
    kept = first["sessions"][3] | {"locked": True, "start": "2027-01-15T15:10:00+01:00", "person": "Basil"}
    (lab / "edited.json").write_text(json.dumps(first | {"sessions": [kept, *first["sessions"][4:]]}))
    again = plan("--keep", "edited.json", "--force")
    assert kept in again["sessions"]
    assert len(again["sessions"]) == 9
    begin = datetime.fromisoformat(kept["start"])
    others = [one for one in again["sessions"] if one != kept]
    near = [
        one for one in others if abs(datetime.fromisoformat(one["start"]) - begin) < timedelta(minutes=75)
    ]
    assert near == []  # there is one kitchen
    (lab / "clash.json").write_text(
        json.dumps(first | {"sessions": [kept, kept | {"recipe": "fresh_lemonade"}]})
    )
    done = CliRunner().invoke(
        main, ["study", "plan", "study.toml", "--out", "p.json", "--keep", "clash.json"]
    )
    assert done.exit_code == 1
    assert "two locked sessions need Basil" in done.stderr
    assert not (lab / "p.json").exists()


def test_nothing_is_planned_in_the_past(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2027, 1, 13, 14, 30, tzinfo=UTC)
    it_is(now, monkeypatch)
    sessions = plan()["sessions"]
    assert sessions
    assert all(datetime.fromisoformat(one["start"]) >= now for one in sessions)


def test_of_a_study_that_is_over_nothing_is_planned_and_the_reason_says_so(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it_is(datetime(2029, 1, 13, 14, 30, tzinfo=UTC), monkeypatch)
    said = plan()
    assert said["sessions"] == []
    assert all("no hour of the study is left" in one["reason"] for one in said["unmet"] if "·" in one["goal"])


def recorded(folder: Path, one: dict[str, Any], **more: Any) -> None:
    """The manifest of a recording of a planned session."""
    folder.mkdir(parents=True)
    write_manifest(folder, {}, {})
    start = int(datetime.fromisoformat(one["start"]).timestamp() * 1e9)
    with edit_manifest(folder) as manifest:
        manifest |= {
            "state": "complete",
            "recipe": {
                "name": one["recipe"],
                "order": one["order"],
                "graph_hash": "",
                "seed": 0,
                "source": "",
            },
            "script": {"strategy": one["strategy"], "display": one["display"], "certificate": None},
            "pseudonym": one["person"],
            "place": one["kitchen"],
            "started": {"utc_ns": start, "host_ns": 1},
            **more,
        }


def test_what_happened_counts_and_what_was_lost_is_planned_anew(lab: Path) -> None:
    first = plan()
    normal = [one for one in first["sessions"] if one["strategy"] == "normal"]
    data = lab / "recordings" / "site" / "week"
    recorded(data / "kept", normal[0])
    recorded(data / "withdrawn", normal[1], withdrawn={"utc_ns": 1})
    recorded(data / "aborted", normal[2], state="aborted")
    recorded(data / "failed", normal[3])
    keep_verdict(data / "failed", {"status": "FAIL"})
    again = plan("--data", "recordings", "--force")
    assert (again["recorded"], len(again["sessions"])) == (1, 8)
    assert again["left_out"] == {
        "site/week/aborted": "aborted",
        "site/week/failed": "verify says FAIL",
        "site/week/withdrawn": "withdrawn",
    }
    orders = [
        one["order"] for one in again["sessions"] if one["recipe"] == normal[0]["recipe"] and one["order"]
    ]
    assert normal[0]["order"] not in orders  # it is used


@pytest.mark.parametrize("command", ["plan", "coverage"])
def test_a_session_without_a_time_zone_is_one_line_of_refusal(lab: Path, command: str) -> None:
    first = plan()
    naive = first["sessions"][0] | {"locked": True, "start": "2027-01-12T10:00:00"}
    (lab / "edited.json").write_text(json.dumps(first | {"sessions": [naive]}))
    (lab / "recordings").mkdir()
    options = {
        "plan": ["--out", "p.json", "--keep", "edited.json"],
        "coverage": ["--data", "recordings", "--plan", "edited.json"],
    }
    done = CliRunner().invoke(main, ["study", command, "study.toml", *options[command]])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "edited.json: sessions: start: " in done.stderr
    assert not (lab / "p.json").exists()


def test_a_locked_session_was_recorded_or_never_took_place_and_counts_once(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = plan()
    normal = [one for one in first["sessions"] if one["strategy"] == "normal"]
    lost, coming = normal[0], normal[-1]
    held = next(one for one in normal if start_of(one) > start_of(lost) + timedelta(hours=11))
    locked = [one | {"locked": True} for one in (lost, held, coming)]
    (lab / "edited.json").write_text(json.dumps(first | {"sessions": locked}))
    late = start_of(held) + timedelta(minutes=50)
    recorded(lab / "recordings" / "take", held | {"start": late.isoformat()})
    it_is(start_of(held) + timedelta(hours=2), monkeypatch)
    again = plan("--keep", "edited.json", "--data", "recordings", "--force")
    assert [one for one in again["sessions"] if one["locked"]] == [coming | {"locked": True}]
    assert again["recorded"] == 1
    assert (
        f"{lost['person']}'s session of {lost['start']} was not recorded: it is planned anew"
        in again["notes"]
    )
    missing = sum(one["missing"] for one in again["unmet"])
    assert again["recorded"] + len(again["sessions"]) + missing == len(first["sessions"])


@pytest.mark.parametrize("command", [["verify"], ["batch", "verify"]])
def test_a_recording_that_verify_fails_does_not_count_any_more(lab: Path, command: list[str]) -> None:
    first = plan()
    take = lab / "recordings" / "take"
    recorded(take, first["sessions"][0])
    (take / "events").mkdir()
    assert plan("--data", "recordings", "--force")["recorded"] == 1
    (take / "events" / "tablet.jsonl").write_text('{"no": "event"}\n')
    done = CliRunner().invoke(main, [*command, "recordings/take", "--json"])
    assert done.exit_code == 1
    again = plan("--data", "recordings", "--force")
    assert (again["recorded"], again["left_out"]) == (0, {"take": "verify says FAIL"})
    assert len(again["sessions"]) == len(first["sessions"])


def logged(
    folder: Path, recipe: str, shown: list[int], cooked: list[int], planned: tuple[int, ...] = ()
) -> None:
    """What a tablet filed: the order shown, the one in which steps were touched, kinds of errors planned."""
    graph = read_graph(RECIPES / f"{recipe}.json")
    steps = {str(step.node): {"label": step.text, "text": step.text} for step in graph.steps}
    frozen = {"name": recipe, "title": recipe, "order": shown, "steps": steps, "planned": [], "edges": []}
    frozen |= {"strategy": "normal", "display": "steps", "seed": 1}
    log = EventLog(folder, "tablet")
    log.append("recipe", host_ns=0, uncertainty_ns=0, body=frozen, op_id="op0")
    for number, node in enumerate(cooked, start=1):
        body = {"node": node, "device": "t"}
        log.append("done", host_ns=number * 10**9, uncertainty_ns=0, body=body, op_id=f"op{number}")
    if planned:
        error = {"error_id": "e", "device": "t", "fields": {"node": shown[0], "categories": list(planned)}}
        log.append("plan_error", host_ns=10**8, uncertainty_ns=0, body=error, op_id="ope")


@pytest.mark.parametrize("planned", [(), (4,), (1, 6)])
def test_kinds_of_errors_go_on_where_the_recordings_are(lab: Path, planned: tuple[int, ...]) -> None:
    names = ("Preparation", "Measurement", "Order", "Timing", "Technique", "Temperature", "Missing step")
    first = plan()["sessions"]
    induced = [one for one in first if one["strategy"] == "induced"]
    assert [one["category"] for one in induced] == list(names[:4])
    take = lab / "recordings" / "take"
    recorded(take, induced[0])
    order = next(one["order"] for one in first if one["recipe"] == induced[0]["recipe"] and one["order"])
    logged(take, induced[0]["recipe"], order, [], planned)
    again = plan("--data", "recordings", "--force")
    done = [names[number] for number in planned] or ["Preparation"]
    coming = [one["category"] for one in again["sessions"] if one["strategy"] == "induced"]
    assert coming == [name for name in names if name not in done][:3]
    seen = {*coming, *(names[number] for number in planned)}
    assert bool(again["unmet"]) == (len(seen) < 4)  # so many are wanted; of an unknown one nobody can say


def test_the_order_that_was_cooked_is_used_up_whatever_was_shown(lab: Path) -> None:
    held = next(one for one in plan()["sessions"] if one["strategy"] == "normal")
    recorded(lab / "recordings" / "take", held)
    again = plan("--data", "recordings", "--force")["sessions"]
    same = [one["order"] for one in again if (one["recipe"], one["strategy"]) == (held["recipe"], "normal")]
    logged(lab / "recordings" / "take", held["recipe"], held["order"], cooked=same[0])
    later = plan("--data", "recordings", "--force")["sessions"]
    assert same[0] != held["order"]
    assert len([one for one in later if one["recipe"] == held["recipe"]]) == len(
        [one for one in again if one["recipe"] == held["recipe"]]
    )
    assert same[0] not in [one["order"] for one in later if one["recipe"] == held["recipe"]]


def test_coverage_is_what_a_recount_of_the_files_says(lab: Path) -> None:
    sessions = plan()["sessions"]
    data = lab / "recordings"
    agreed = {"consent": "form 1", "consent_scopes": ["annotate", "release_raw"]}
    for number, one in enumerate(sessions):
        recorded(data / f"take_{number}", one, **(agreed if number % 2 else {}))
        if number % 3:
            keep_verdict(data / f"take_{number}", {"status": ("PASS", "WARN")[number % 2]})
        if number == 4:
            (data / "take_4" / "annotations").mkdir()
            (data / "take_4" / "annotations" / "accepted.json").write_text("{}")
    recorded(data / "gone", sessions[0], withdrawn={"utc_ns": 1})
    recorded(data / "burnt", sessions[0], abandoned={"reason": "the pan burnt", "host_ns": 1})
    options = ["--data", "recordings", "--by", "recipe,strategy", "--csv", "c.csv", "--json"]
    done = CliRunner().invoke(main, ["study", "coverage", "study.toml", *options])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    again: dict[tuple[str, str], Counter[str]] = {}
    for path in data.glob("*/recording.json"):
        manifest = json.loads(path.read_text())
        if "withdrawn" in manifest or "abandoned" in manifest:
            continue
        counts = again.setdefault((manifest["recipe"]["name"], manifest["script"]["strategy"]), Counter())
        verdict = path.parent / "sync" / "verify.json"
        free = "release_raw" in manifest.get("consent_scopes", [])
        counts["recorded"] += 1
        counts["verified"] += verdict.exists()
        counts["annotated"] += (path.parent / "annotations" / "accepted.json").exists()
        counts["consented"] += free
        counts["releasable"] += free and verdict.exists()
    assert sum(counts["recorded"] for counts in again.values()) == 9
    for row in said["rows"]:
        counts = again[row["recipe"], row["strategy"]]
        wanted = 3 if (row["recipe"], row["strategy"]) == ("fresh_lemonade", "normal") else 2
        assert row["wanted"] == wanted
        assert {name: row[name] for name in counts} == dict(counts)
    assert said["left_out"] == {"gone": "withdrawn", "burnt": "aborted: the pan burnt"}
    table = list(csv.DictReader((lab / "c.csv").read_text().splitlines()))
    assert [{key: str(value) for key, value in row.items()} for row in said["rows"]] == table
    plain = CliRunner().invoke(main, ["study", "coverage", "study.toml", "--data", "recordings"]).stdout
    assert "does not count: gone: withdrawn" in plain
    assert "releasable" in plain.splitlines()[0]


@pytest.mark.parametrize("by", ["kitchen", "person", "person,recipe,kitchen"])
def test_each_kitchen_and_person_has_a_row_where_no_goal_names_one(lab: Path, by: str) -> None:
    text = (lab / "study.toml").read_text()
    (lab / "study.toml").write_text(f'{text}[kitchens.south]\nhours = ["mon-fri 08:00-18:00"]\n')
    sessions = plan()["sessions"]
    taken = {"north": sessions[::2], "south": sessions[1::2]}
    for kitchen, held in taken.items():
        for number, one in enumerate(held[:-1]):
            recorded(lab / "recordings" / f"{kitchen}{number}", one | {"kitchen": kitchen})
    done = CliRunner().invoke(
        main, ["study", "coverage", "study.toml", "--data", "recordings", "--by", by, "--json"]
    )
    rows = {tuple(row[name] for name in by.split(",")): row for row in json.loads(done.stdout)["rows"]}
    again: Counter[tuple[str, ...]] = Counter()
    for path in (lab / "recordings").glob("*/recording.json"):
        manifest = json.loads(path.read_text())
        said = {
            "kitchen": manifest["place"],
            "person": manifest["pseudonym"],
            "recipe": manifest["recipe"]["name"],
        }
        again[tuple(said[name] for name in by.split(","))] += 1
    assert {key: row["recorded"] for key, row in rows.items() if row["recorded"]} == again
    assert sum(row["wanted"] for row in rows.values()) == 9
    assert sum(row["missing"] for row in rows.values()) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Europe/Berlin", "Europe/Nowhere", "there is no time zone 'Europe/Nowhere'"),
        ("mon-fri 09:00-17:00", "mon-fri 17:00-09:00", "ends before it begins"),
        ("mon-fri 09:00-17:00", "always", "'always' is not a time such as"),
        ("count = 2", "count = 0", "goals.0.count"),
        ('"tea_and_toast"', '"nothing"', "there is no recipe 'nothing'; there are"),
        ('"induced"', '"wild"', "there is no strategy 'wild'"),
        ('person = "Clove"', 'part = ""', "occurs twice"),
        ("[rules]", "[ruels]", "ruels"),
        ("days = 5", "days = five", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_planned_is_one_line(lab: Path, old: str, new: str, said: str) -> None:
    text = (lab / "study.toml").read_text()
    assert old in text
    (lab / "study.toml").write_text(text.replace(old, new, 1))
    done = CliRunner().invoke(main, ["study", "plan", "study.toml", "--out", "plan.json"])
    assert done.exit_code == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (lab / "plan.json").exists()


def test_sessions_are_as_long_as_nine_of_ten_recordings_were(lab: Path) -> None:
    first = plan()["sessions"]
    assert {length(one) for one in first} == {timedelta(minutes=60)}
    for number, minutes in enumerate((31, 20, 43, 29, 38)):
        stopped = {"host_ns": 1 + minutes * 60 * 10**9, "utc_ns": 1, "reason": "asked"}
        recorded(lab / "recordings" / f"take{number}", first[number], stopped=stopped)
        again = plan("--data", "recordings", "--force")
    (note,) = again["notes"]
    assert "45 minutes" in note
    assert {length(one) for one in again["sessions"]} == {timedelta(minutes=45)}
    text = (lab / "study.toml").read_text().replace("days = 5", "days = 5\nsession_minutes = 30")
    (lab / "study.toml").write_text(text)
    stated = plan("--data", "recordings", "--force")
    assert (stated["notes"], {length(one) for one in stated["sessions"]}) == ([], {timedelta(minutes=30)})


def test_days_on_which_clocks_change_and_recipes_that_are_others_by_now_are_named(lab: Path) -> None:
    text = (lab / "study.toml").read_text().replace("2027-01-11", "2027-03-25")
    (lab / "study.toml").write_text(text)
    first = plan()
    assert first["notes"] == [
        "clocks change on 2027-03-28 in Europe/Berlin: hours stay local, sessions last as long"
    ]
    normal = next(one for one in first["sessions"] if one["strategy"] == "normal")
    changed = normal | {"locked": True, "order": normal["order"][::-1]}
    other = next(one for one in first["sessions"] if one["start"] != normal["start"])
    unwanted = other | {"locked": True, "recipe": "soup", "strategy": "induced", "order": []}
    (lab / "edited.json").write_text(json.dumps(first | {"sessions": [changed, unwanted]}))
    notes = plan("--keep", "edited.json", "--force")["notes"]
    assert any(f"{normal['recipe']} has a new version" in note for note in notes)
    assert any("stays, but no goal wants soup" in note for note in notes)
    assert len(notes) == 3


def start_of(one: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(one["start"])


def length(one: dict[str, Any]) -> timedelta:
    return timedelta(minutes=one["minutes"])


def test_a_recipe_without_a_wrong_order_gets_no_disordered_session_and_the_reason(lab: Path) -> None:
    recipes = lab / "recipes"
    recipes.mkdir()
    shutil.copy(RECIPES / "tea_and_toast.json", recipes)
    one_step = {"steps": {"0": "START", "1": "Cook-Cook the meat until it is done", "2": "END"}}
    (recipes / "meat.json").write_text(json.dumps(one_step | {"edges": [[0, 1], [1, 2]]}))
    study = STUDY.format(days=5, recipes=recipes)
    goals = '{ recipe = ["tea_and_toast", "meat"], strategy = "disordered", count = 1 },'
    study = f"goals = [{goals}]\n{study[study.index('[study]') :]}"
    (lab / "study.toml").write_text(study.replace("categories = 4", "categories = 0"))
    said = plan()
    assert [one["recipe"] for one in said["sessions"]] == ["tea_and_toast"]
    assert said["sessions"][0]["script"]
    (missing,) = said["unmet"]
    assert (missing["goal"], missing["missing"]) == ("meat · disordered", 1)
    assert missing["reason"].startswith("meat has no wrong order")
