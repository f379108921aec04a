"""Push tasks to an annotation server, and pull annotations from it; repeating either changes nothing."""

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
    """The result of a push: new projects, recordings with a new task, and recordings that had a task."""

    projects: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)


class ProjectDiffers(ServerRefused):
    """A project or task is not as it was pushed: it was changed or deleted on the server."""


class PushStopped(ServerRefused):
    """A push stopped before its end."""


def push(server: Server, tasks: list[tuple[Path, ServerTask]]) -> PushedTasks:
    """Add a task for every recording without one, and a project for each recipe version.

    Raises PushStopped, after which the same push continues.
    """
    result = PushedTasks()
    try:
        for of_project in _by_project(tasks):
            _push_project(server, of_project, result)
    except ServerRefused as error:
        done = len(result.added) + len(result.there)
        raise PushStopped(f"{done} of {len(tasks)} recordings are there: {error}") from error
    return result


def _by_project(tasks: list[tuple[Path, ServerTask]]) -> list[list[tuple[Path, ServerTask]]]:
    projects: dict[str, list[tuple[Path, ServerTask]]] = {}
    for path, task in tasks:
        projects.setdefault(task.project, []).append((path, task))
    return list(projects.values())


def _push_project(server: Server, to_push: list[tuple[Path, ServerTask]], result: PushedTasks) -> None:
    first = to_push[0][1]
    project = server.project(first.project)
    if project is None:
        number, on_server = server.add_project(first.project, first.config), {}
        result.projects.append(first.project)
    else:
        _check_labels(project, first)
        number, on_server = project.id, {task.recording: task for task in server.tasks(project.id)}
    for path, task in to_push:
        if task.recording in on_server:
            _check_same(on_server[task.recording], task)
            result.there.append(task.recording)
        else:
            server.add_task(number, task.task)
            result.added.append(task.recording)
        with editing(path):  # kept in the recording, so that `pull` notices a deleted task
            places = _pushed_to(path)
            if (place := {"server": server.url, "project": task.project}) not in places:
                write_annotations(path, PUSHED, {"schema": PUSHED_SCHEMA, "places": [*places, place]})


def _check_labels(project: Project, ours: ServerTask) -> None:
    """Check that all labels are in the project. Raises ProjectDiffers."""
    if missing := sorted(set(ours.labels) - project.labels):
        others = sorted(project.labels - set(ours.labels))
        instead = f", there is {others[0]!r}" if others else ""
        raise ProjectDiffers(
            f"project {project.title}: label renamed: {missing[0]!r} is not in it{instead}; restore its name"
        )


def _check_same(task: Task, ours: ServerTask) -> None:
    """Check that a task has a video of the recording. Raises ProjectDiffers."""
    if (sha256 := task.data.get("proxy_sha256")) not in ours.films:
        raise ProjectDiffers(
            f"task {task.id}: video of another hash: {sha256} was never written for {ours.recording}; "
            "delete the task and push it again"
        )


def _pushed_to(recording: Path) -> list[dict[str, str]]:
    return list((read_annotations(recording, PUSHED, PUSHED_SCHEMA) or {"places": []})["places"])


@dataclass
class Pulled:
    """The result of a pull for one recording: new and existing versions; `findings` about invalid regions."""

    recording: str
    task: int
    new: list[int]
    same: list[int]
    findings: list[str]


def pull(server: Server, tasks: list[tuple[Path, ServerTask]]) -> tuple[list[Pulled], list[str]]:
    """Store the annotations of all tasks; return the results, and a line for each recording that was refused.

    Raises ServerRefused if the server does not answer: stored annotations stay, and the same pull continues.
    """
    pulled: list[Pulled] = []
    refused: list[str] = []
    for of_project in _by_project(tasks):
        first = of_project[0][1]
        try:
            if (project := server.project(first.project)) is None:
                raise ProjectDiffers(f"{server.url}: has no project {first.project!r}; push first")
            _check_labels(project, first)
            on_server = {task.recording: task for task in server.tasks(project.id)}
        except (BadGraph, ProjectDiffers) as error:
            refused += [f"{path.name}: {error}" for path, _ in of_project]
            continue
        for path, task in of_project:
            try:
                pulled.append(_pull_task(server.url, path, task, on_server.get(task.recording)))
            except (BadGraph, ProjectDiffers) as error:
                refused.append(f"{path.name}: {error}")
    return pulled, refused


def _pull_task(url: str, path: Path, ours: ServerTask, task: Task | None) -> Pulled:
    if task is None:
        was_pushed = {"server": url, "project": ours.project} in _pushed_to(path)
        why = "deleted task: it was pushed and is gone" if was_pushed else "it was never pushed"
        raise ProjectDiffers(f"{why}: project {ours.project} has no task of it; push it")
    _check_same(task, ours)
    # Stored before it is parsed, so that a malformed annotation is not lost.
    kept = keep(path, task, f"{url} project {ours.project}")
    read = Reader(ours.recording)
    (pushed,) = tasks_of([ours.task], ours.recording)
    # A server may return only the number of a prediction.
    task = replace(task, prediction=task.prediction or pushed.prediction)
    steps = read_steps(task, MarkedFilm(ours.fps, task.frames, frozenset(ours.labels)), read)
    read_narration(task, steps.findings, read)
    findings = [f"{finding.word}: {finding.where}" for finding in steps.findings]
    findings += [f"cancelled work: annotation {a.id}" for a in task.annotations if a.was_cancelled]
    if task.fps is None or not is_rate(task.fps, ours.fps):
        findings.append(f"region at another rate: task {task.id} has {task.fps} frames a second")
    return Pulled(ours.recording, task.id, sorted(kept.new), sorted(kept.same), findings)
