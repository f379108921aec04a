"""`kitchensync annotate accept`: accept an annotation as the step times of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import NotRequired

import click

from kitchensync.dataset.annotation.accept import accept as accept_steps
from kitchensync.dataset.annotation.accept import accept_narrations, keep_file
from kitchensync.dataset.annotation.forms.agreement_of_people import SpanErrors, agreement
from kitchensync.dataset.annotation.labels import labels_of, touched_spans
from kitchensync.dataset.commands.export_source import Assessed, answer, status_of
from kitchensync.dataset.source.own_recording import OwnRecording
from kitchensync.shell.answer import Answer, answers
from kitchensync.storage.consent import Purpose
from kitchensync.storage.options.given_path import GivenRecording, given_path


class AcceptedAnnotation(Assessed):
    """The object `annotate-accept/1`."""

    recording: str
    version: int
    "Its number in `annotations/` of the recording."
    annotation: int
    author: str
    steps: int
    against_touches: NotRequired[SpanErrors]
    "Accepted step times against the touches at the tablet."
    narrations: NotRequired[int]
    "Of an annotation in the form audio."


@click.command()
@click.argument("recording", type=GivenRecording())
@click.option(
    "--annotation",
    type=click.IntRange(1),
    required=True,
    metavar="ID",
    help="Its number at the server; in .eaf and .csv the number of the person, from 1.",
)
@click.option(
    "--file",
    type=given_path(exists=True, dir_okay=False),
    help="Take it from this file (JSON, .eaf) and keep it [default: what `annotate pull` kept].",
)
@answers("annotate-accept/1")
def accept(recording: Path, annotation: int, file: Path | None) -> Answer[AcceptedAnnotation]:
    """Accept an annotation as the step times of a recording: releases and exports use it instead of the touches.

    It is refused if a region is invalid or belongs to another video. All versions stay in `annotations/` of the
    recording, and the same command with another --annotation changes the choice. Steps that were touched as done but
    not marked count as not done; they give a warning. An annotation of the form audio becomes the narrations of its
    author, beside the step times: releases have them in fine_grained.json.

    \b
    Example:
      kitchensync annotate accept data/take-1 --annotation 1000
    """
    with OwnRecording.open(recording, purpose=Purpose.LOOK) as own:
        if file is not None:
            keep_file(own, file)
        if (narrated := accept_narrations(own, annotation)) is not None:
            count = len(narrated["narrations"])
            kept: AcceptedAnnotation = {
                "status": "PASS",
                "version": narrated["version"],
                "author": narrated["author"],
                "narrations": count,
                "recording": recording.name,
                "annotation": annotation,
                "steps": 0,
                "warnings": [],
            }
            return answer(kept, f"{count} narrations of {recording.name} are kept", strict=False)
        result = accept_steps(own, annotation)
        labels = labels_of(own.state["recording"])
        accepted = own.accepted
        spans = {label: accepted.spans_s(node) for node, label in labels.items()} if accepted else {}
        marked = {label: listed for label, listed in spans.items() if listed}
        against_touches = agreement(touched_spans(own), marked, own.film_s)
    warnings = [f"touched as done, not marked: {labels[node]}" for node in result["touched_not_marked"]]
    report: AcceptedAnnotation = {
        "status": status_of(warnings),
        "recording": recording.name,
        "version": result["version"],
        "annotation": annotation,
        "author": result["author"],
        "steps": len(result["steps"]),
        "against_touches": against_touches,
        "warnings": warnings,
    }
    summary = f"{len(result['steps'])} steps of {recording.name} are now those of annotation {annotation}"
    return answer(report, summary, strict=False)
