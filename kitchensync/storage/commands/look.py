"""`kitchensync list` and `info`: which recordings there are, and what is in one."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from kitchensync.shell.answer import Answer, answers, length_words, show_table, size_words
from kitchensync.shell.progress import Bar
from kitchensync.storage.catalogue.conditions import all_of
from kitchensync.storage.names import recordings_in
from kitchensync.storage.options.data_folder import default_data
from kitchensync.storage.options.given_path import GivenRecording, given_path

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
"""Characters of a line that is broken."""


@click.command("list")
@click.argument("root", default=default_data, type=given_path(exists=True, file_okay=False))
@click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only recordings for which this holds, such as `verdict!=FAIL`, `recipe=tea_and_toast`, `seconds>600`, "
    "`person=` (not known), `place~north` (a part of it), `releasable=yes`; given again, all have to hold.",
)
@click.option("--rebuild", is_flag=True, help="Read every recording again, ignoring the catalogue.")
@answers("list/1")
def list_recordings(root: Path, conditions: tuple[str, ...], rebuild: bool) -> Answer:
    """List the recordings below ROOT (else the data folder), recursively.

    The verdict is the last one of `record`, `verify` or `report`; of a withdrawn recording only its name is shown.

    \b
    Example:
      kitchensync list data --where verdict=PASS --where strategy=normal
    """
    from kitchensync.storage.catalogue.kept_lines import catalogue_of

    all_of(conditions)  # refused before anything is read
    with Bar(unit="recordings") as bar, catalogue_of(root, again=rebuild, show=bar.show) as catalogue:
        lines = catalogue.lines(conditions)
    trouble = [line["problem"] for line in lines if line.get("problem")]
    none = [] if lines else [f"{root} holds no {'such ' if conditions else ''}recording"]
    return Answer({"root": str(root), "recordings": lines}, _show_list, [*none, *trouble])


def _show_list(said: dict[str, Any]) -> None:
    if lines := said["recordings"]:
        show_table(COLUMNS, (_row(line) for line in lines), left=8)
        whole = sum(line.get("bytes", 0) for line in lines)
        click.echo(f"{len(lines)} recordings, {size_words(whole)}")


def _row(line: dict[str, Any]) -> list[str]:
    known = {key: "" if value is None else str(value) for key, value in line.items()}
    started = known.get("started", "").replace("T", " ").removesuffix("Z")
    size = size_words(line["bytes"]) if "bytes" in line else ""
    part = f"part of {known['part_of']}" if known.get("part_of") else ""
    life = ", ".join(filter(None, (known.get("life"), "aborted" if known.get("aborted") else "", part)))
    cells = (
        life,
        known.get("verdict", ""),
        known.get("alignment", ""),
        _copies(line),
    )
    about = (known.get("recipe", ""), known.get("person", ""), started, length_words(line.get("seconds")))
    return [line["path"], *about, *cells, size]


def _copies(line: dict[str, Any]) -> str:
    return ", ".join(f"{Path(one['place']).name}: {one['state']}" for one in line.get("stores", []))


@click.command()
@click.argument("path", type=GivenRecording(usable=True))
@answers("info/1")
def info(path: Path) -> Answer:
    """Show what a recording contains: streams, cameras, events, alignments, verdict.

    \b
    Example:
      kitchensync info data/take-1
    """
    from kitchensync.storage.catalogue.contents import contents_of
    from kitchensync.storage.recording import open_recording

    if (found := recordings_in(path)) != [path]:
        raise click.UsageError(
            f"{path} is a folder of {len(found)} recordings; name one, or use `kitchensync list`"
        )
    with open_recording(path) as recording:
        said = contents_of(recording)
    return Answer(said, _show, _problems(said))


def _problems(said: dict[str, Any]) -> list[str]:
    parts = [
        *said["streams"].items(),
        *said["cameras"].items(),
        *((one["source"], one) for one in said["alignments"]),
    ]
    found = [f"{name}: {part['problem']}" for name, part in parts if part.get("problem")]
    return [*([said["problem"]] if said.get("problem") else []), *found]


def _show(said: dict[str, Any]) -> None:
    from kitchensync.storage.copies.store_states import StoreReport

    about = [said["life"], said.get("recipe"), said.get("person"), said.get("place"), said.get("started")]
    words = [str(one) for one in (*about, length_words(said.get("seconds"))) if one]
    click.echo(f"{said['recording']}: {', '.join(words)}; {size_words(said.get('bytes', 0))}")
    click.echo(f"verdict {said.get('verdict') or 'none yet'}, consent {said.get('consent')}")
    for store in said["stores"]:
        click.echo(StoreReport(**store).words)
    click.echo(f"aborted, not to be used: {said['aborted']}\n" if said.get("aborted") else "")
    rows = [_stream_row(name, stream) for name, stream in said["streams"].items()]
    show_table(("stream", "packets", "Hz", "nominal", "from", "to", "size"), rows)
    for name, camera in said["cameras"].items():
        for film in camera["files"]:
            picture = f"{film['width']}x{film['height']} at {film['fps']}" if "width" in film else ""
            facts = (length_words(film.get("seconds")), picture, size_words(film["bytes"]))
            click.echo(f"{name}/{film['name']}: {', '.join(filter(None, facts))}")
    if said["events"]:
        counts = ", ".join(f"{count}\N{NO-BREAK SPACE}{kind}" for kind, count in said["events"].items())
        lines = wrap(f"events: {counts}", LINE, subsequent_indent="        ", break_long_words=False)
        click.echo("\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))
    for one in said["alignments"]:
        click.echo(f"{one['source']}: {', '.join(filter(None, (one['status'], one['bounds'])))}")
    if said["calibration"]:
        click.echo(f"calibration: {len(said['calibration'])} tables")


def _stream_row(name: str, stream: dict[str, Any]) -> list[object]:
    rates = [_hz(stream.get("rate_hz")), _hz(stream.get("nominal_hz"))]
    return [name, stream.get("packets") or 0, *rates, *_ends(stream), size_words(stream.get("bytes") or 0)]


def _hz(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}"


def _ends(stream: dict[str, Any]) -> list[str]:
    return ["" if stream.get(key) is None else f"{stream[key]:.2f} s" for key in ("from_s", "to_s")]
