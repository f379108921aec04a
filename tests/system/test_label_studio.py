"""The way through a real Label Studio server: handed out, marked there, accepted, released."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from browser import CHROMIUM
from click.testing import CliRunner
from cooked_recording import write_cooked
from label_server import LabelStudio, film_seconds, label_studio, label_studio_command
from labelled import region
from numbered_recording import FRAME_S
from typed_commands import answer as run

from kitchensync.cli import main
from kitchensync.storage.manifest import edit_manifest

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SECRET = "spilt"
"""What the error of the recording is described as."""
FRAMES_SHOWN = [1, 2, 23, 100, 659, 300]
DRAWN, MOVED = "S04 · Do thing 4", "S02 · Do thing 2"


def recording(root: Path) -> Path:
    write_cooked(root)
    with edit_manifest(root / "take1") as manifest:
        manifest["consent"], manifest["consent_scopes"] = "form-1", ["annotate", "release_raw"]
    return root / "take1"


def mark(server: LabelStudio, project: int) -> int:
    """Take over the proposals, one of them moved by a second, and draw one region more; return the annotation."""
    (task,) = server.session.get(f"/api/tasks?project={project}&fields=all").json()["tasks"]
    result = task["predictions"][0]["result"]
    assert [one["origin"] for one in result] == ["prediction"] * 3
    (moved,) = (one for one in result if one["value"]["timelinelabels"] == [MOVED])
    moved["value"]["ranges"] = [{"start": 131, "end": 260}]
    moved["origin"] = "prediction-changed"
    drawn = region(301, 330, DRAWN)
    made = server.write(f"/api/tasks/{task['id']}/annotations", {"result": [*result, drawn]})
    return int(made["id"])


def named(take: Path, there: tuple[object, ...], said: str) -> None:
    done = CliRunner().invoke(main, ["annotate", "pull", str(take), *map(str, there)])
    assert done.exit_code == 1, done.output
    assert said in done.stderr


def is_in_database(server: LabelStudio, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in server.folder.rglob("*") if path.is_file())


def test_regions_drawn_and_moved_at_a_real_server_are_in_the_release_within_a_frame(tmp_path: Path) -> None:
    label_studio_command()
    take = recording(tmp_path / "data")
    (one,) = run("annotate", "export", take, "--out", tmp_path / "films" / "kitchen")["tasks"]
    (tmp_path / "server").mkdir()
    with label_studio(tmp_path / "server", tmp_path / "films") as server:
        (tmp_path / "token").write_text(server.token)
        there = ("--url", server.url, "--token-file", tmp_path / "token")
        assert run("annotate", "push", take, *there)["added"] == ["take1"]
        assert run("annotate", "push", take, *there)["there"] == ["take1"]
        (project,) = server.session.get("/api/projects").json()["results"]
        folder = {"project": project["id"], "path": str(tmp_path / "films" / "kitchen"), "title": "films"}
        server.write("/api/storages/localfiles", folder)
        film = server.session.get(f"/data/local-files/?d=kitchen/{one['version']}/films/take1.mp4")
        assert hashlib.sha256(film.content).hexdigest() == one["proxy_sha256"]
        if CHROMIUM is not None:
            (task,) = server.session.get(f"/api/tasks?project={project['id']}").json()["tasks"]
            shown_s = film_seconds(server, project["id"], task["id"], FRAMES_SHOWN)
            starts_s = [(frame - 1) * FRAME_S for frame in FRAMES_SHOWN]
            assert shown_s == pytest.approx(starts_s, abs=FRAME_S / 3), "the page counts from 1 as we do"
        annotation = mark(server, project["id"])
        pulled = run("annotate", "pull", take, *there)
        assert pulled["recordings"][0]["new"] == [annotation]
        kept = {path.name: path.read_bytes() for path in (take / "annotations").iterdir()}
        again = run("annotate", "pull", take, *there)
        assert (again["recordings"][0]["new"], again["recordings"][0]["same"]) == ([], [annotation])
        assert {path.name: path.read_bytes() for path in (take / "annotations").iterdir()} == kept
        assert is_in_database(server, DRAWN), "the database is where we look"
        assert not is_in_database(server, SECRET)
        exported = server.session.get(f"/api/projects/{project['id']}/export?exportType=JSON").content
        (tmp_path / "export.json").write_bytes(exported)
        flat = server.session.get(f"/api/projects/{project['id']}/export?exportType=JSON_MIN").content
        (tmp_path / "flat.json").write_bytes(flat)
        (task,) = server.session.get(f"/api/tasks?project={project['id']}").json()["tasks"]
        server.write(f"/api/tasks/{task['id']}/annotations", {"result": [], "was_cancelled": True})
        cancelled = run("annotate", "pull", take, *there)
        assert len(cancelled["recordings"][0]["new"]) == 1
        assert "cancelled work" in " ".join(cancelled["warnings"])
        kept = {path.name: path.read_bytes() for path in (take / "annotations").iterdir()}
        server.write(f"/api/tasks/{task['id']}", None, "DELETE")
        named(take, there, "deleted task: it was pushed and is gone")
        renamed = project["label_config"].replace("S01 · Do", "S01 · Make")
        server.write(f"/api/projects/{project['id']}", {"label_config": renamed}, "PATCH")
        named(take, there, "label renamed: 'S01 · Do thing 1' is not in it, there is 'S01 · Make thing 1'")
        assert {path.name: path.read_bytes() for path in (take / "annotations").iterdir()} == kept
    read = run("annotate", "read", tmp_path / "export.json")["recordings"]["take1"]
    (spans,) = read["annotators"].values()
    assert spans[DRAWN] == [[pytest.approx(300 * FRAME_S), pytest.approx(330 * FRAME_S)]]
    refused = CliRunner().invoke(main, ["annotate", "read", str(tmp_path / "flat.json")])
    assert "JSON_MIN" in refused.stderr
    run("annotate", "accept", take, "--annotation", annotation)
    run("release", "captaincook4d", take, "--out", tmp_path / "out", "--media", "")
    content = (tmp_path / "out/annotation_json/complete_step_annotations.json").read_text()
    (released,) = json.loads(content).values()
    times = {step["description"]: (step["start_time"], step["end_time"]) for step in released["steps"]}
    for label, (start, end) in ((2, (131, 260)), (4, (301, 330))):
        expected = ((start - 1) * FRAME_S, end * FRAME_S)
        assert times[f"Do-Do thing {label}"] == pytest.approx(expected, abs=0.001)
