"""`kitchensync annotate export`: films, labels and proposals for an annotation server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kitchensync.dataset.commands.export_source import answer
from kitchensync.shell.answer import Answer, answers
from kitchensync.shell.progress import Bar
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.given_path import WITHOUT_CONSENT, GivenRecording
from kitchensync.storage.options.output_options import OutputFolder, output
from kitchensync.storage.options.outputs import write_into

if TYPE_CHECKING:
    from kitchensync.dataset.annotation.hand_out import ServerTask

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
    help="Whether annotators see the errors; whoever marks step times should not.",
)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=GivenRecording())
@output(
    "out",
    "--out",
    kind=OutputFolder(),
    required=True,
    help="Folder to write into, one folder a recipe version.",
)
@ERRORS
@click.option(
    "--form",
    type=click.Choice(["timeline", "audio", "elan"]),
    default="timeline",
    show_default=True,
    help="timeline: steps in frames; audio: narration in seconds, with text; elan: an .eaf a recording.",
)
@click.option(
    "--films-at",
    metavar="URL",
    help="Where the server serves OUT [default: /data/local-files/?d=OUT's name, Label Studio's local files].",
)
@WITHOUT_CONSENT
@answers("annotate-export/1")
def export(
    paths: tuple[Path, ...],
    out: Path,
    force: bool,
    errors: str,
    form: str,
    films_at: str | None,
    without_consent: str,
) -> Answer:
    """Write what an annotation server needs: small videos, config.xml, and tasks.json with proposals from touches.

    One folder a recipe version, to be imported as one project. Films have 360 lines and a constant rate; frame k of
    such a film is picture k of the camera's film. A film that is there is not written again. What went wrong on
    purpose is in no file unless --errors shown. Of several recordings those that have no recipe, or whose film has
    no time, are left out and named.

    For ELAN, steps that overlap are on tiers of their own; nanoseconds, which ELAN does not know, are in
    .eaf.times.json beside it. It gets the accepted times where there are some.

    \b
    Example:
      kitchensync annotate export data --out to-annotate
    """
    from kitchensync.dataset.annotation.hand_out import (
        Choice,
        elan_files,
        handed_out,
        open_to_annotate,
        write_film,
    )
    from kitchensync.dataset.source.own_recording import NotReleasable
    from kitchensync.storage.consent import Purpose, note_override, require_consent

    recordings = list(dict.fromkeys(one for path in paths for one in recordings_in(path)))
    for path in recordings:  # before a byte is written
        require_consent(path, Purpose.ANNOTATE, without_consent=without_consent)
    for path in recordings:
        note_override(path, Purpose.ANNOTATE, without_consent)
    choice = Choice(
        "timeline" if form == "elan" else form,
        errors == "shown",
        films_at or f"/data/local-files/?d={out.name}",
    )
    made: list[ServerTask] = []
    files: dict[str, bytes] = {}
    left_out: dict[str, NotReleasable] = {}
    with Bar(unit="pictures") as bar:
        for path in recordings:
            try:
                with open_to_annotate(path, without_consent) as own:
                    write_film(own, out, choice, force=force, tell=bar.show)
                    made.append(handed_out(own, choice))
                    files |= elan_files(own) if form == "elan" else {}
            except NotReleasable as error:  # without a recipe, a film, a time: the others go on
                left_out[path.name] = error
    if not made:
        raise next(iter(left_out.values()))
    by_version: dict[str, list[ServerTask]] = {}
    for one in made:
        by_version.setdefault(one.project.partition(" ")[0], []).append(one)
    for version, mine in by_version.items() if form != "elan" else ():
        tasks = json.dumps([one.task for one in mine], indent=1, ensure_ascii=False) + "\n"
        files |= {f"{version}/config.xml": mine[0].config, f"{version}/tasks.json": tasks.encode()}
    write_into(out, files, force=force)
    said = {
        "tasks": [
            {
                "recording": one.recording,
                "version": one.project.partition(" ")[0],
                "frames": one.task["data"]["frames"],
                "fps": str(one.fps),
                "proxy_sha256": one.task["data"]["proxy_sha256"],
                "predictions": sum(len(proposal["result"]) for proposal in one.task["predictions"]),
            }
            for one in made
        ],
        "left_out": [{"recording": name, "why": str(error)} for name, error in left_out.items()],
        "folder": str(out),
    }
    notes = [f"{name} left out: {error}" for name, error in left_out.items()]
    return answer(said, notes, f"{len(made)} recordings in {out}", strict=False)
