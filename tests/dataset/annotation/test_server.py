"""`kitchensync annotate export|push|pull`: what is handed out, again and again, and what people change meanwhile."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
from click.testing import CliRunner
from cooked_recording import copied, film_s
from label_server import TOKEN, KeptProjects, kept_projects
from labelled import annotation, region
from numbered_recording import FRAME_S
from small_recordings import FRAMES

from kitchensync.cli import main
from kitchensync.dataset.annotation.label_server import Server
from kitchensync.virtual_kitchen.kitchen import Kitchen

pytestmark = pytest.mark.slow

SECRET = "spilt"
"""What the error of the recording is described as."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KeptProjects]:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with kept_projects() as kept:
        yield kept


def run(*words: object) -> Any:
    return CliRunner().invoke(main, [*map(str, words), "--json"])


def ask(verb: str, data: Path, server: KeptProjects, *words: object) -> Any:
    return run("annotate", verb, data, "--url", server.url, "--token-file", data.parent / "token", *words)


def with_films(cooked: tuple[Kitchen, Path], out: Path) -> Path:
    """Copy what was exported once: its film need not be written again."""
    shutil.copytree(cooked[1] / "films", out)
    return out


def kept_in(recording: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (recording / "annotations").glob("*")}


def test_what_is_handed_out_is_the_film_with_the_touches_in_it(
    cooked: tuple[Kitchen, Path], data: Path
) -> None:
    out = data.parent / "out"
    done = run("annotate", "export", data, "--out", out)
    assert done.exit_code == 0, done.stderr
    (one,) = json.loads(done.stdout)["tasks"]
    assert (one["recording"], one["frames"], one["predictions"]) == ("take1", FRAMES, 3)
    folder = out / one["version"]
    with av.open(str(folder / "films/take1.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) == FRAMES
        assert film.streams.video[0].average_rate == pytest.approx(1 / FRAME_S)
    (task,) = json.loads((folder / "tasks.json").read_text())
    assert task["data"]["video"] == f"/data/local-files/?d=out/{one['version']}/films/take1.mp4"
    ends = {
        r["value"]["timelinelabels"][0]: r["value"]["ranges"][0]["end"]
        for r in task["predictions"][0]["result"]
    }
    for label, at_s in (("S01 · thing 1", 3.25), ("S02 · thing 2", 7.777), ("S03 · thing 3", 14.05)):
        assert ends[label.replace("thing", "Do thing")] * FRAME_S == pytest.approx(
            film_s(cooked[0], at_s), abs=2 * FRAME_S
        )
    regions = [region["id"] for region in task["predictions"][0]["result"]]
    assert regions == ["touch-S01-1", "touch-S02-1", "touch-S03-1"], "the same in every export"
    read = run("annotate", "read", folder / "tasks.json", "--config", folder / "config.xml")
    assert json.loads(read.stdout)["recordings"]["take1"]["problems"] == []
    assert not any(SECRET.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert run("annotate", "export", data, "--out", out).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


def test_a_recording_without_a_recipe_does_not_stop_the_others(
    cooked: tuple[Kitchen, Path], data: Path
) -> None:
    shutil.rmtree(copied(data, "bare") / "events")
    out = with_films(cooked, data.parent / "out")
    done = run("annotate", "export", data, "--out", out, "--force")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert [one["recording"] for one in said["tasks"]] == ["take1"]
    (left,) = said["left_out"]
    assert (left["recording"], "no recipe was cooked" in left["why"]) == ("bare", True)
    alone = run("annotate", "export", data / "bare", "--out", data.parent / "other")
    assert (alone.exit_code, (data.parent / "other").exists()) == (1, False)


def test_errors_are_in_the_task_of_who_may_read_them(cooked: tuple[Kitchen, Path], data: Path) -> None:
    out = with_films(cooked, data.parent / "out")
    assert run("annotate", "export", data, "--out", out, "--errors", "shown", "--force").exit_code == 0
    (tasks,) = out.glob("*/tasks.json")
    assert json.loads(tasks.read_text())[0]["data"]["errors"] == "S02 · Do thing 2: spilt"
    assert "$errors" in tasks.with_name("config.xml").read_text()


def test_who_did_not_agree_is_refused_before_a_byte_is_written(data: Path, server: KeptProjects) -> None:
    copied(data, "unwilling", lambda manifest: manifest.update(consent_scopes=["release_raw"]))
    for ran in (run("annotate", "export", data, "--out", data.parent / "out"), ask("push", data, server)):
        assert ran.exit_code == 1
        assert "does not hold `annotate`" in ran.stderr
    assert not (data.parent / "out").exists()
    assert server.projects == {}
    assert ask("push", data, server, "--without-consent", "a rehearsal").exit_code == 0


def test_pushed_marked_pulled_accepted_and_nothing_changes_the_second_time(
    data: Path, server: KeptProjects
) -> None:
    first = ask("push", data, server)
    assert json.loads(first.stdout)["added"] == ["take1"], first.stderr
    again = json.loads(ask("push", data, server).stdout)
    assert (again["added"], again["there"], again["projects"]) == ([], ["take1"], [])
    assert SECRET not in json.dumps([server.projects, server.tasks])
    good = annotation(7, 3, region(31, 60, "S01 · Do thing 1"), region(101, 190, "S02 · Do thing 2"))
    server.mark("take1", good)
    server.mark("take1", annotation(8, 3, region(1, 9, "S01 · Do thing 1"), cancelled=True))
    pulled = ask("pull", data, server)
    assert pulled.exit_code == 0, pulled.stdout
    said = json.loads(pulled.stdout)
    assert said["recordings"][0]["new"] == [7, 8]
    assert "take1: cancelled work: annotation 8" in said["warnings"]
    assert "take1: step without region: task 100 annotation 7 S03 · Do thing 3" in said["warnings"]
    kept = kept_in(data / "take1")
    assert json.loads(kept["steps-1.json"])["raw"] == good
    said = json.loads(ask("pull", data, server).stdout)
    assert (said["recordings"][0]["new"], said["recordings"][0]["same"]) == ([], [7, 8])
    assert kept_in(data / "take1") == kept
    assert run("annotate", "accept", data / "take1", "--annotation", 7).exit_code == 0
    server.task("take1")["annotations"][0]["result"][0]["value"]["ranges"][0]["start"] = 41
    assert json.loads(ask("pull", data, server).stdout)["recordings"][0]["new"] == [7]
    assert json.loads(kept_in(data / "take1")["steps-3.json"])["annotation"] == 7
    server.mark("take1", annotation(9, 3, region(40, 60, "S01 · Do thing 1")))
    warnings = json.loads(ask("pull", data, server).stdout)["warnings"]
    assert "take1: two annotations by one person: task 100 annotation 9" in warnings


def test_a_withdrawal_names_the_server_to_which_a_task_went(data: Path, server: KeptProjects) -> None:
    pushed = ask("push", data, server)
    assert pushed.exit_code == 0, pushed.stderr
    said = json.loads(run("withdraw", data / "take1").stdout)
    assert said["status"] == "open"
    assert [one["open"] for one in said["places"] if one["place"].startswith("http")] == [
        "it was sent there: ask for its deletion"
    ]


def test_a_push_that_lost_the_network_says_how_far_it_came_and_goes_on(
    data: Path, server: KeptProjects
) -> None:
    for name in ("take2", "take3"):
        copied(data, name)
    server.lose_after = 2
    lost = ask("push", data, server)
    assert lost.exit_code == 1
    assert "2 of 3 recordings are there" in lost.stderr
    assert "cannot be reached" in lost.stderr
    server.lose_after = None
    said = json.loads(ask("push", data, server).stdout)
    assert (said["added"], said["there"], said["projects"]) == (["take3"], ["take1", "take2"], [])
    assert len(server.projects) == 1


def test_what_people_change_at_the_server_is_named_and_nothing_is_kept(
    data: Path, server: KeptProjects
) -> None:
    never = ask("pull", data, server)
    assert (never.exit_code, "has no project" in never.stderr) == (1, True)
    assert ask("push", data, server).exit_code == 0
    server.mark("take1", annotation(7, 3, region(31, 60, "S01 · Do thing 1")))
    before = kept_in(data / "take1")
    config, task = server.projects[1]["label_config"], dict(server.task("take1")["data"])
    server.projects[1]["label_config"] = config.replace("S01 · Do", "S01 · Make")
    renamed = ask("pull", data, server)
    server.projects[1]["label_config"] = config
    server.task("take1")["data"]["proxy_sha256"] = "0" * 64
    other = ask("pull", data, server)
    server.task("take1")["data"] = task
    server.tasks[1].append({"id": 5, "data": {"image": "/cat.png"}, "annotations": []})
    server.tasks[1].pop(0)
    gone = ask("pull", data, server)
    for ran, said in (
        (renamed, "label renamed: 'S01 · Do thing 1' is not in it, there is 'S01 · Make thing 1'"),
        (other, f"task 100: video of another hash: {'0' * 64} was never written for take1"),
        (gone, "deleted task: it was pushed and is gone"),
    ):
        assert ran.exit_code == 1
        assert said in ran.stderr
    assert kept_in(data / "take1") == before


def test_narrations_are_pushed_and_pulled_as_they_are(data: Path, server: KeptProjects) -> None:
    assert ask("push", data, server, "--form", "audio").exit_code == 0
    (task,) = server.tasks[1]
    assert (task["predictions"][0]["result"][0]["type"], "audio" in task["data"]) == ("labels", True)
    value = {"start": 1.5, "end": 2.5, "channel": 0}
    said = {"id": "a", "from_name": "action", "to_name": "audio", "type": "labels"}
    written = {"id": "a", "from_name": "transcription", "to_name": "audio", "type": "textarea"}
    result = [
        {**said, "value": {**value, "labels": ["S01 · Do thing 1"]}},
        {**written, "value": {**value, "text": ["I stir"]}},
    ]
    server.mark("take1", annotation(7, 3, *result))
    assert ask("pull", data, server, "--form", "audio").exit_code == 0
    assert json.loads(kept_in(data / "take1")["steps-1.json"])["raw"]["result"] == result


def test_what_cannot_be_read_is_named_and_kept_as_it_came(data: Path, server: KeptProjects) -> None:
    assert ask("push", data, server, "--form", "audio").exit_code == 0
    value = {"start": "soon", "end": 2.5, "channel": 0, "labels": ["S01 · Do thing 1"]}
    result = [{"id": "a", "from_name": "action", "to_name": "audio", "type": "labels", "value": value}]
    server.mark("take1", annotation(7, 3, *result))
    pulled = ask("pull", data, server, "--form", "audio")
    assert pulled.exit_code == 1
    assert "not a number of seconds" in pulled.stderr
    assert json.loads(kept_in(data / "take1")["steps-1.json"])["raw"]["result"] == result


def test_an_access_that_ran_out_is_renewed_and_the_token_itself_is_sent_to_nobody_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text("a.b.c")
    given, seen = iter(("first", "second")), []

    def answer(request: httpx.Request) -> httpx.Response:
        said = request.headers.get("Authorization", "")
        seen.append((request.url.path, said))
        if request.url.path == "/api/token/refresh/":
            assert json.loads(request.content) == {"refresh": "a.b.c"}
            return httpx.Response(200, json={"access": next(given)})
        if said == "Bearer first":
            return httpx.Response(401, json={"detail": "expired"})
        return httpx.Response(200, json={"results": [], "next": None})

    with Server("http://127.0.0.1:1", tmp_path / "token", httpx.MockTransport(answer)) as server:
        assert server.project("tea") is None
        assert server.project("tea") is None
    renewal, projects = ("/api/token/refresh/", ""), "/api/projects"
    asked = [renewal, (projects, "Bearer first"), renewal, *([(projects, "Bearer second")] * 2)]
    assert seen == asked


def test_a_task_that_leaves_this_computer_is_noted_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "token").write_text(TOKEN)
    log, noted = tmp_path / "kitchensync" / "sent-to-others.jsonl", []

    def answer(_: httpx.Request) -> httpx.Response:
        noted.append(log.read_text() if log.exists() else "")
        return httpx.Response(201, json={})

    task = {"data": {"recording_id": "take-1"}}
    for url in ("https://labels.example.org", "http://127.0.0.1:1"):
        with Server(url, tmp_path / "token", httpx.MockTransport(answer)) as server:
            server.add_task(1, task)
    content = json.dumps([task]).encode()
    (line,) = map(json.loads, noted[0].splitlines())
    assert (line["host"], line["bytes"]) == ("labels.example.org", len(content))
    assert line["sha256"] == hashlib.sha256(content).hexdigest()
    assert noted[1] == noted[0], "what stays on this computer goes to nobody"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.org", "unencrypted"),
        ("ftp://127.0.0.1", "is not an address of a server"),
        ("http://127.0.0.1:1", "cannot be reached"),
    ],
)
def test_an_address_that_cannot_be_is_refused(data: Path, url: str, said: str) -> None:
    (data.parent / "token").write_text(TOKEN)
    ran = run("annotate", "push", data, "--url", url, "--token-file", data.parent / "token")
    assert ran.exit_code == 1
    assert said in ran.stderr
    assert TOKEN not in ran.output


def test_a_wrong_token_is_refused_and_never_shown(data: Path, server: KeptProjects) -> None:
    (data.parent / "token").write_text("wrongwrongwrong")
    ran = ask("push", data, server)
    assert ran.exit_code == 1
    assert "refuses the token (401)" in ran.stderr
    assert "wrongwrong" not in ran.output
    (data.parent / "token").write_text("two words")
    assert "holds no token" in ask("push", data, server).stderr


def test_an_eaf_goes_out_and_what_was_moved_in_it_is_accepted_within_a_frame(
    cooked: tuple[Kitchen, Path], data: Path
) -> None:
    out = with_films(cooked, data.parent / "out")
    assert run("annotate", "export", data, "--out", out, "--form", "elan").exit_code == 0
    (path,) = out.glob("*/take1.eaf")
    first = json.loads(run("annotate", "read", path).stdout)["recordings"]["take1"]["annotators"]["touches"]
    ((start_s, end_s),) = first["S02 · Do thing 2"]
    before, after = f'TIME_VALUE="{round(end_s * 1000)}"', f'TIME_VALUE="{round(end_s * 1000) + 400}"'
    path.write_text(path.read_text().replace(before, after))
    done = run("annotate", "accept", data / "take1", "--annotation", 1, "--file", path)
    assert done.exit_code == 0, done.stderr
    assert run("annotate", "export", data, "--out", out, "--form", "elan", "--force").exit_code == 0
    ((who, found),) = json.loads(run("annotate", "read", path).stdout)["recordings"]["take1"][
        "annotators"
    ].items()
    assert who == "touches"
    assert found["S02 · Do thing 2"] == [pytest.approx([start_s, end_s + 0.4], abs=FRAME_S)]
