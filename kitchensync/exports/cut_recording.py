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
from kitchensync.storage.redact.cut import write_cut
from kitchensync.storage.verify import keep_verdict, verify
from kitchensync.storage.withdraw.made_of import origins_of


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
) -> Answer:  # fmt: skip
    """Make a span, or a step, of a recording a recording of its own, to share or to try things on.

    Clocks, session seconds, sequence numbers, events and consent are those of the whole; what was cut off is named by
    the cause `cut`. Pictures and sound of privacy pauses are not there. Half a second on both sides goes with it,
    before it up to the key frame, and the motion of a minute, so that films are aligned as before. A withdrawal of
    the whole removes it.

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
    for origin in origins_of(path):  # a part of a part is one of the whole, too
        asked(origin)
    with open_recording(path) as recording, written_folder(out, proof=MANIFEST) as part:
        made = write_cut(recording, (span.start, span.end), part, as_id=out.name)
        synced, checked = synchronize(part)["status"], verify(part)
        keep_verdict(part, checked)
    size = sum(one.stat().st_size for one in out.rglob("*") if one.is_file())
    counts = f"{sum(made['packets'].values()):,} packets, {len(made['films'])} films, {size_words(size)}"
    words = f"{out.name}: {counts}; {synced}, {checked['status']}"
    said = {
        "recording": out.name,
        "path": str(out.resolve()),
        "of": path.name,
        "span_s": span.said,
        "bytes": size,
    }
    return Answer(said | made | {"sync": synced, "verdict": checked["status"]}, lambda _: click.echo(words))
