"""`kitchensync annotate export`: videos, labels and proposals for an annotation server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

import click

from kitchensync.dataset.annotation.hand_out import (
    ExportOptions,
    ServerTask,
    elan_files,
    open_to_annotate,
    server_task,
    write_film,
)
from kitchensync.dataset.commands.export_source import Assessed, answer, status_of
from kitchensync.dataset.source.own_members import LeftOut
from kitchensync.dataset.source.own_recording import NotReleasable
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.consent import Purpose, note_override, require_consent
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, GivenRecording
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import write_into


class ExportedTask(TypedDict):
    """What annotators get of a recording."""

    recording: str
    version: str
    "Recipe version, which is the folder."
    frames: int
    fps: str
    "Frames a second, as a fraction."
    proxy_sha256: str
    "Hash of the small video."
    predictions: int
    "Proposed spans of steps."


class ExportedTasks(Assessed):
    """The object `annotate-export/1`."""

    tasks: list[ExportedTask]
    left_out: list[LeftOut]
    folder: str


FORM = click.option(
    "--form",
    type=click.Choice(["timeline", "audio"]),
    default="timeline",
    show_default=True,
    help="timeline: steps in frames; audio: narration in seconds, with text.",
)
ERRORS = click.option(
    "--errors",
    type=click.Choice(["hidden", "shown"]),
    default="hidden",
    show_default=True,
    help="Whether annotators see the errors; they should not while marking step times.",
)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@output(
    "out",
    "--out",
    kind=OutputFolder(),
    required=True,
    help="Folder to write into, one folder per recipe version.",
)
@ERRORS
@click.option(
    "--form",
    type=click.Choice(["timeline", "audio", "elan"]),
    default="timeline",
    show_default=True,
    help="timeline: steps in frames; audio: narration in seconds, with text; elan: an .eaf per recording.",
)
@WITHOUT_CONSENT
@answers("annotate-export/1")
def export(
    paths: tuple[Path, ...],
    out: Path,
    force: bool,
    errors: str,
    form: str,
    without_consent: str,
) -> Answer[ExportedTasks]:
    """Write what an annotation server needs: small videos, config.xml, and tasks.json with proposals from touches.

    One folder per recipe version, to be imported as one project. Videos have 360 lines and a constant rate; frame k
    is frame k of the camera's video. An existing video is not written again. Planned errors are in no file unless
    --errors shown. Recordings without a recipe, or with a video without capture times, are left out with a warning.

    For ELAN, steps that overlap are on separate tiers; nanoseconds, which ELAN does not have, are in .eaf.times.json
    beside it. The .eaf has the accepted step times if there are any.

    \b
    Example:
      kitchensync annotate export data --out to-annotate
    """
    recordings = recordings_with_consent(paths, Purpose.ANNOTATE, without_consent)
    options = ExportOptions(
        "timeline" if form == "elan" else form,
        errors == "shown",
        f"/data/local-files/?d={out.name}",
    )
    tasks: list[ServerTask] = []
    files: dict[str, bytes] = {}
    left_out: dict[str, NotReleasable] = {}
    with Bar(unit="pictures") as bar:
        for path in recordings:
            try:
                with open_to_annotate(path, without_consent) as own:
                    write_film(own, out, options, force=force, tell=bar.show)
                    tasks.append(server_task(own, options))
                    files |= elan_files(own) if form == "elan" else {}
            except NotReleasable as error:  # continue with the other recordings
                left_out[path.name] = error
    if not tasks:
        raise next(iter(left_out.values()))
    by_version: dict[str, list[ServerTask]] = {}
    for task in tasks:
        by_version.setdefault(task.project.partition(" ")[0], []).append(task)
    for version, of_version in by_version.items() if form != "elan" else ():
        content = json.dumps([task.task for task in of_version], indent=1, ensure_ascii=False) + "\n"
        files |= {f"{version}/config.xml": of_version[0].config, f"{version}/tasks.json": content.encode()}
    write_into(out, files, force=force)
    warnings = [f"{name} left out: {error}" for name, error in left_out.items()]
    report: ExportedTasks = {
        "status": status_of(warnings),
        "tasks": [
            {
                "recording": task.recording,
                "version": task.project.partition(" ")[0],
                "frames": task.task["data"]["frames"],
                "fps": str(task.fps),
                "proxy_sha256": task.task["data"]["proxy_sha256"],
                "predictions": sum(len(proposal["result"]) for proposal in task.task["predictions"]),
            }
            for task in tasks
        ],
        "left_out": [{"recording": name, "why": str(error)} for name, error in left_out.items()],
        "folder": str(out),
        "warnings": warnings,
    }
    return answer(report, f"{len(tasks)} recordings in {out}", strict=False)


def recordings_with_consent(paths: Iterable[Path], purpose: Purpose, without_consent: str = "") -> list[Path]:
    """Return the recordings below paths. Raises NotPermitted, before anything is written, if one lacks consent."""
    recordings = list(dict.fromkeys(recording for path in paths for recording in recordings_in(path)))
    for path in recordings:
        require_consent(path, purpose, without_consent=without_consent)
    for path in recordings:
        note_override(path, purpose, without_consent)
    return recordings
