"""Tasks to an annotation server, and what people marked back: doing either again changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from kitchensync.dataset.annotation.accept import keep
from kitchensync.dataset.annotation.forms.frame_times import is_rate
from kitchensync.dataset.annotation.forms.marked_steps import MarkedFilm, read_steps
from kitchensync.dataset.annotation.forms.narration import read_narration
from kitchensync.dataset.annotation.forms.server_export import Task, tasks_of
from kitchensync.dataset.annotation.hand_out import ServerTask
from kitchensync.dataset.annotation.label_server import Project, Server, ServerRefused
from kitchensync.storage.recording_files.annotation_folder import (
    PUSHED,
    PUSHED_SCHEMA,
    editing,
    read_annotations,
    write_annotations,
)
from kitchensync.task_graphs.errors import BadGraph
from kitchensync.task_graphs.formats.strict_json import Reader


@dataclass
class PushedTasks:
    """What a push did: projects that were made, recordings whose task was added, and those that had one."""

    projects: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)


class ProjectDiffers(ServerRefused):
    """A project or task that is not what was pushed: somebody changed or deleted it."""


class PushStopped(ServerRefused):
    """A push that ended in the middle, with how far it came."""


def push(server: Server, wanted: list[tuple[Path, ServerTask]]) -> PushedTasks:
    """Add a task for every recording that has none yet, a project for each recipe version.

    Raises PushStopped, after which the same push goes on.
    """
    made = PushedTasks()
    try:
        for title in dict.fromkeys(one.project for _, one in wanted):
            _push_project(server, [pair for pair in wanted if pair[1].project == title], made)
    except ServerRefused as error:
        done = len(made.added) + len(made.there)
        raise PushStopped(f"{done} of {len(wanted)} recordings are there: {error}") from error
    return made


def _push_project(server: Server, wanted: list[tuple[Path, ServerTask]], made: PushedTasks) -> None:
    first = wanted[0][1]
    project = server.project(first.project)
    if project is None:
        number, tasks = server.add_project(first.project, first.config), {}
        made.projects.append(first.project)
    else:
        _check_labels(project, first)
        number, tasks = project.id, {task.recording: task for task in server.tasks(project.id)}
    for path, one in wanted:
        if one.recording in tasks:
            _check_same(tasks[one.recording], one)
            made.there.append(one.recording)
        else:
            server.add_task(number, one.task)
            made.added.append(one.recording)
        with editing(path):  # noted there, so that a task that was deleted is missed
            places = _pushed_to(path)
            if (place := {"server": server.url, "project": one.project}) not in places:
                write_annotations(path, PUSHED, {"schema": PUSHED_SCHEMA, "places": [*places, place]})


def _check_labels(project: Project, ours: ServerTask) -> None:
    """Refuse a project in which somebody changed the labels. Raises ServerRefused."""
    if lacks := sorted(set(ours.labels) - project.labels):
        others = sorted(project.labels - set(ours.labels))
        instead = f", there is {others[0]!r}" if others else ""
        raise ProjectDiffers(
            f"project {project.title}: label renamed: {lacks[0]!r} is not in it{instead}; name it as it was"
        )


def _check_same(task: Task, ours: ServerTask) -> None:
    """Refuse marks in a film that was never handed out. Raises ProjectDiffers."""
    if (found := task.data.get("proxy_sha256")) not in ours.films:
        raise ProjectDiffers(
            f"task {task.id}: film of another hash: {found} was never written of {ours.recording}; "
            "delete the task and push it anew"
        )


def _pushed_to(recording: Path) -> list[dict[str, str]]:
    return list((read_annotations(recording, PUSHED, PUSHED_SCHEMA) or {"places": []})["places"])


@dataclass
class Pulled:
    """What a pull brought of one recording; `findings` are what does not count, a line each."""

    recording: str
    task: int
    new: list[int]
    same: list[int]
    findings: list[str]


def pull(server: Server, wanted: list[tuple[Path, ServerTask]]) -> tuple[list[Pulled], list[str]]:
    """Keep what people marked; return it, and a line for each recording of which nothing was kept, with why.

    Raises ServerRefused where the server cannot be asked: what was kept before stays, the same pull goes on.
    """
    pulled: list[Pulled] = []
    refused: list[str] = []
    for title in dict.fromkeys(one.project for _, one in wanted):
        mine = [pair for pair in wanted if pair[1].project == title]
        try:
            if (project := server.project(title)) is None:
                raise ProjectDiffers(f"{server.url}: has no project {title!r}; push first")
            _check_labels(project, mine[0][1])
            tasks = {task.recording: task for task in server.tasks(project.id)}
        except (BadGraph, ProjectDiffers) as error:
            refused += [f"{path.name}: {error}" for path, _ in mine]
            continue
        for path, one in mine:
            try:
                pulled.append(_pull_task(server.url, path, one, tasks.get(one.recording)))
            except (BadGraph, ProjectDiffers) as error:
                refused.append(f"{path.name}: {error}")
    return pulled, refused


def _pull_task(url: str, path: Path, one: ServerTask, task: Task | None) -> Pulled:
    if task is None:
        was_there = {"server": url, "project": one.project} in _pushed_to(path)
        why = "deleted task: it was pushed and is gone" if was_there else "it was never pushed"
        raise ProjectDiffers(f"{why}: project {one.project} has no task of it; push it")
    _check_same(task, one)
    # Kept before it is read: what came stays, whatever it says.
    kept = keep(path, task, f"{url} project {one.project}")
    read = Reader(one.recording)
    (ours,) = tasks_of([one.task], one.recording)
    task = replace(task, prediction=task.prediction or ours.prediction)  # a server may give only its number
    steps = read_steps(task, MarkedFilm(one.fps, task.frames, frozenset(one.labels)), read)
    read_narration(task, steps.findings, read)
    findings = [f"{finding.word}: {finding.where}" for finding in steps.findings]
    findings += [f"cancelled work: annotation {a.id}" for a in task.annotations if a.was_cancelled]
    if task.fps is None or not is_rate(task.fps, one.fps):
        findings.append(f"region at another rate: task {task.id} says {task.fps} frames a second")
    return Pulled(one.recording, task.id, sorted(kept.new), sorted(kept.same), findings)
