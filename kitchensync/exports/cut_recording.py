"""`kitchensync cut`: a part of a recording as a recording of its own."""

from __future__ import annotations

from pathlib import Path

import click

from kitchensync.exports.exported_span import choice_of, span_options
from kitchensync.reader.opened_recording import OpenedRecording
from kitchensync.shell.answer import Answer, answers, size_words
from kitchensync.storage.copies.derived import asked
from kitchensync.storage.names import MANIFEST
from kitchensync.storage.options.given_path import GivenRecording
from kitchensync.storage.options.output_options import OutputFolder
from kitchensync.storage.options.outputs import check_recording_place, written_folder
from kitchensync.storage.recording import open_recording
from kitchensync.storage.redact.cut import CutContents, write_cut
from kitchensync.storage.verify import keep_verdict, verify
from kitchensync.storage.withdraw.made_of import origins_of


class CutRecording(CutContents):
    """The object `cut/1`."""

    recording: str
    path: str
    of: str
    "The recording that it is a part of."
    span_s: list[float | None]
    bytes: int
    sync: str
    verdict: str


@click.command()
@click.argument("path", type=GivenRecording(usable=True))
@click.option(
    "--out",
    type=OutputFolder(),
    required=True,
    help="Folder of the new recording; its name is the id.",
)
@span_options
@answers("cut/1")
def cut(
    path: Path, out: Path,
    start: float | None, end: float | None, step: int | None,
) -> Answer[CutRecording]:  # fmt: skip
    """Make a new recording from a span or a step of a recording, to share or for experiments.

    Clocks, session seconds, sequence numbers, events and consent are those of the original; data outside the span is
    reported as missing with the cause `cut`. Frames and sound of privacy pauses are left out. The part includes half
    a second on both sides, data back to the previous key frame, and a minute of motion, so that videos are aligned as
    before. A withdrawal of the original removes it.

    \b
    Example:
      kitchensync cut data/take-1 --step 3 --out data/take-1-step-3
    """
    from kitchensync.sync.synchronize import synchronize

    if start is end is step is None:
        raise click.UsageError("give --from and --to, or --step")
    check_recording_place(out)
    with OpenedRecording(path) as opened:
        span = choice_of(start, end, step).span(opened)
        span.check_inside(opened)
    for origin in origins_of(path):  # the part of a part is also a part of the original
        asked(origin)
    with open_recording(path) as recording, written_folder(out, proof=MANIFEST) as part:
        contents = write_cut(recording, (span.start, span.end), part, as_id=out.name)
        sync_status, verdict = synchronize(part)["status"], verify(part)
        keep_verdict(part, verdict)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    packets, videos = sum(contents["packets"].values()), len(contents["films"])
    summary = f"{packets:,} packets, {videos} videos, {size_words(size)}; {sync_status}, {verdict['status']}"
    answer: CutRecording = {
        "recording": out.name,
        "path": str(out.resolve()),
        "of": path.name,
        "span_s": span.as_json,
        "bytes": size,
        **contents,
        "sync": sync_status,
        "verdict": verdict["status"],
    }
    return Answer(answer, lambda _: click.echo(f"{out.name}: {summary}"))
