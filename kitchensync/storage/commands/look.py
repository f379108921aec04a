"""`kitchensync list` and `info`: list recordings, and show the contents of one."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, TypedDict

import click

from kitchensync.shell.answer import Answer, answers, length_words, show_table, size_words
from kitchensync.shell.progress import Bar
from kitchensync.storage.catalogue.conditions import all_of
from kitchensync.storage.catalogue.kept_lines import catalogue_of
from kitchensync.storage.copies.store_states import StoreReport, StoreState
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.data_folder import default_data
from kitchensync.storage.options.given_path import GivenRecording, given_path

if TYPE_CHECKING:
    from kitchensync.storage.catalogue.contents import RecordingContents, StreamContent
    from kitchensync.storage.catalogue.listing import RecordingLine

COLUMNS = (
    "recording",
    "recipe",
    "person",
    "started (UTC)",
    "length",
    "life",
    "verdict",
    "alignment",
    "copies",
    "size",
)
LINE = 100
"""Width at which lines are wrapped, characters."""


class RecordingList(TypedDict):
    """The object `list/1`."""

    root: str
    recordings: list[RecordingLine]


@click.command("list")
@click.argument("root", default=default_data, type=given_path(exists=True, file_okay=False))
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only recordings that meet this condition, such as `verdict!=FAIL`, `recipe=tea_and_toast`, `seconds>600`, "
    "`person=` (not known), `place~north` (a part of it), `releasable=yes`; several conditions must all hold.",
)
@click.option("--rebuild", is_flag=True, help="Read every recording again, ignoring the catalogue.")
@answers("list/1")
def list_recordings(root: Path, conditions: tuple[str, ...], rebuild: bool) -> Answer[RecordingList]:
    """List the recordings below ROOT (else the data folder), recursively.

    The verdict is the last one of `record`, `verify`, `report`, `move` or `cut`. A withdrawn recording has only its
    name and life.

    \b
    Example:
      kitchensync list data --where verdict=PASS --where strategy=normal
    """
    all_of(conditions)  # refused before anything is read
    with Bar(unit="recordings") as bar, catalogue_of(root, again=rebuild, show=bar.show) as catalogue:
        lines = catalogue.lines(conditions)
    problems = [line["problem"] for line in lines if line.get("problem")]
    if not lines:
        problems = [f"{root} holds no {'such ' if conditions else ''}recording"]
    return Answer({"root": str(root), "recordings": lines}, _show_list, problems)


def _show_list(report: RecordingList) -> None:
    if lines := report["recordings"]:
        show_table(COLUMNS, (_row(line) for line in lines), left=8)
        whole = sum(line.get("bytes", 0) for line in lines)
        click.echo(f"{len(lines)} recordings, {size_words(whole)}")


def _row(line: RecordingLine) -> list[str]:
    texts = {key: "" if value is None else str(value) for key, value in line.items()}
    started = texts.get("started", "").replace("T", " ").removesuffix("Z")
    size = size_words(line["bytes"]) if "bytes" in line else ""
    part_text = f"part of {texts['part_of']}" if texts.get("part_of") else ""
    life = ", ".join(filter(None, (texts.get("life"), "aborted" if texts.get("aborted") else "", part_text)))
    cells = (
        life,
        texts.get("verdict", ""),
        texts.get("alignment", ""),
        ", ".join(f"{Path(store['place']).name}: {store['state']}" for store in line.get("stores", [])),
    )
    about = (texts.get("recipe", ""), texts.get("person", ""), started, length_words(line.get("seconds")))
    return [line["path"], *about, *cells, size]


@click.command()
@click.argument("path", type=GivenRecording(usable=True))
@answers("info/1")
def info(path: Path) -> Answer[RecordingContents]:
    """Show what a recording contains: streams, cameras, events, alignments, verdict.

    \b
    Example:
      kitchensync info data/take-1
    """
    from kitchensync.storage.catalogue.contents import contents_of
    from kitchensync.storage.recording import open_recording

    if (recordings := recordings_in(path)) != [path]:
        raise click.UsageError(
            f"{path} is a folder of {len(recordings)} recordings; name one, or use `kitchensync list`"
        )
    with open_recording(path) as recording:
        report = contents_of(recording)
    parts = [
        *report["streams"].items(),
        *report["cameras"].items(),
        *((alignment["source"], alignment) for alignment in report["alignments"]),
    ]
    problems = [report["problem"]] if report.get("problem") else []
    problems += [f"{name}: {part['problem']}" for name, part in parts if part.get("problem")]
    return Answer(report, _show, problems)


def _show(report: RecordingContents) -> None:
    about = [
        report["life"],
        report.get("recipe"),
        report.get("person"),
        report.get("place"),
        report.get("started"),
    ]
    facts = [str(fact) for fact in (*about, length_words(report.get("seconds"))) if fact]
    click.echo(f"{report['recording']}: {', '.join(facts)}; {size_words(report.get('bytes', 0))}")
    click.echo(f"verdict {report.get('verdict') or 'none yet'}, consent {report.get('consent')}")
    for store in report["stores"]:
        click.echo(StoreReport(store["place"], StoreState(store["state"]), store["why"]).words)
    click.echo(f"aborted, not to be used: {report['aborted']}\n" if report.get("aborted") else "")
    rows = [_stream_row(name, stream) for name, stream in report["streams"].items()]
    show_table(("stream", "packets", "Hz", "nominal", "from", "to", "size"), rows)
    for name, camera in report["cameras"].items():
        for film in camera["files"]:
            picture = f"{film['width']}x{film['height']} at {film['fps']}" if "width" in film else ""
            texts = (length_words(film.get("seconds")), picture, size_words(film["bytes"]))
            click.echo(f"{name}/{film['name']}: {', '.join(filter(None, texts))}")
    if report["events"]:
        counts = ", ".join(f"{count}\N{NO-BREAK SPACE}{kind}" for kind, count in report["events"].items())
        lines = wrap(f"events: {counts}", LINE, subsequent_indent="        ", break_long_words=False)
        click.echo("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))
    for alignment in report["alignments"]:
        result = (alignment["status"], alignment["bounds"])
        click.echo(f"{alignment['source']}: {', '.join(filter(None, result))}")
    if report["calibration"]:
        click.echo(f"calibration: {len(report['calibration'])} tables")


def _stream_row(name: str, stream: StreamContent) -> list[object]:
    rates = [_hz(stream.get("rate_hz")), _hz(stream.get("nominal_hz"))]
    ends = ["" if stream.get(key) is None else f"{stream[key]:.2f} s" for key in ("from_s", "to_s")]
    return [name, stream.get("packets") or 0, *rates, *ends, size_words(stream.get("bytes") or 0)]


def _hz(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}"
