"""Write the generated pages of docs, or check that they can be made and that those in git are up to date.

python tools/generate.py [--check]
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path

import click
from answers import answers_page
from architecture import architecture_drawing, architecture_page
from dictionary import dictionary_page
from limits import with_limits

import kitchensync as api
from kitchensync.capture.monitor.rules import ON_THIS_COMPUTER, RULES, TOO_BUSY
from kitchensync.capture.process.cpu_pressure import BUSY_PERCENT
from kitchensync.capture.rig.rig_file import RigFile
from kitchensync.cli import COMMANDS
from kitchensync.cli import main as kitchensync
from kitchensync.operations.error_rows import ERROR_COLUMNS
from kitchensync.reader.body_streams import GazeRay, GazeStream, Hands, HandStream, HeadStream
from kitchensync.reader.film_streams import CameraMotion, CameraSound, FilmStream
from kitchensync.reader.headset_streams import (
    DepthStream,
    PacketStream,
    PictureStream,
    PosedStream,
    SoundStream,
)
from kitchensync.reader.instant_sequence import InstantSequence, OneInstant
from kitchensync.reader.motion_streams import HeadsetMotion, MotionStream
from kitchensync.reader.opened_recording import OpenedRecording, StreamAttribute
from kitchensync.reader.reading_clock import ReadingClock
from kitchensync.reader.record_streams import RecordStream
from kitchensync.reader.recording_source import Alignments
from kitchensync.reader.step_table import EVENT_COLUMNS, STEP_COLUMNS
from kitchensync.reader.timed_stream import TimedStream
from kitchensync.sensors.hololens.catalogue import STREAMS
from kitchensync.sensors.hololens.profile import Profile
from kitchensync.storage.chunks.layout import layout_of
from kitchensync.storage.geometry.camera_models import Pinhole
from kitchensync.storage.lab import Lab
from kitchensync.storage.reading.headset_pictures import Frame

DOCS = Path(__file__).resolve().parents[1] / "docs"
READER = (
    OpenedRecording, TimedStream, PacketStream, PosedStream, PictureStream, DepthStream, SoundStream, MotionStream,
    RecordStream, HeadsetMotion, FilmStream, CameraMotion, CameraSound, HeadStream, HandStream, GazeStream,
    OneInstant, InstantSequence, Alignments, ReadingClock, Hands, GazeRay, Frame, Pinhole,
)  # fmt: skip
"""What `kitchensync.open` gives, the general before the special, then what those give."""


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Yield a command and everything below it, in the order of the help."""
    context = click.Context(command, info_name=path)
    yield path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, f"{path} {name}")


def command_page() -> str:
    """Return the page of all commands as their own help says it."""
    lines = ["# Commands", "", "Written by `make docs` from the commands' own help.", ""]
    lines += ["Exit codes: 0 fine (PASS, WARN, aligned, check), 1 failed or refused, 2 wrong usage.", ""]
    lines += ["| section | commands |", "|---|---|"]
    for section, table in COMMANDS.items():
        links = ", ".join(f"[{name}](#kitchensync-{name})" for name in table)
        lines.append(f"| {section} | {links} |")
    lines.append("")
    for path, command, context in commands(kitchensync, "kitchensync"):
        context.terminal_width = context.max_content_width = 100
        lines += [f"## {path}", "", "```text", command.get_help(context).rstrip(), "```", ""]
    return "\n".join(lines)


def api_page() -> str:
    """Return names, signatures and first lines of the Python API, which others write their programs against."""
    lines = ["# Python", "", "Written by `make docs` from the docstrings; by task: ", ""]
    lines[2] += "[read a recording from Python](../how-to/read-a-recording.md)."
    lines += ["```python", "import kitchensync as ks", "```", ""]
    for name in sorted(api.__all__):
        function = getattr(api, name)
        if not callable(function):
            lines += [f"## ks.{name}", "", f"`{function!r}`", ""]
            continue
        words = inspect.getdoc(function).splitlines()[0]
        lines += [f"## ks.{name}", "", f"`ks.{name}{_signature(function)}`", "", words, ""]
    for one in READER:
        title, _, more = (inspect.getdoc(one) or "").partition("\n\n")
        lines += [f"## {one.__name__}", "", title, "", *([more, ""] if more else [])]
        if named := [name for name in _fields(one) if not name.startswith("_")]:
            lines += [f"Fields: {_quoted(named)}", ""]
        members = {name: member for base in _described(one) for name, member in vars(base).items()}
        rows = [_row(name, member) for name, member in sorted(members.items()) if not name.startswith("_")]
        if any(rows):
            lines += ["| member | gives |", "|---|---|", *filter(None, rows), ""]
    lines += ["## Tables", ""]
    lines += [f"Columns of `rec.steps`: {_quoted(STEP_COLUMNS)}", ""]
    lines += [f"Columns of `rec.errors`: {_quoted(ERROR_COLUMNS)}", ""]
    lines += [f"Columns of `rec.events`: {_quoted(EVENT_COLUMNS)}"]
    return "\n".join(lines) + "\n"


def _fields(one: type) -> Iterable[str]:
    """Return the fields of a data class or a named tuple."""
    if is_dataclass(one):
        return [field.name for field in fields(one)]
    found: Iterable[str] = getattr(one, "_fields", ())
    return found


def _described(one: type) -> list[type]:
    """Return a class with those of its bases that have no part of the page."""
    ours = (base for base in reversed(one.__mro__) if base.__module__.startswith("kitchensync."))
    return [base for base in ours if base is one or base not in READER]


def _row(name: str, member: object) -> str:
    """Return the row of a member with its first sentences; nothing for what is not described."""
    words = (inspect.getdoc(member) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    if isinstance(member, StreamAttribute):
        return f"| `.{name}` | `{member.kind.__name__}`: {words} |"
    is_described = words and callable(getattr(member, "fget", None) or member)
    if not is_described and not isinstance(member, cached_property):
        return ""
    words = words.removeprefix("Return ")
    return f"| `.{name}{_signature(member)}` | {words[:1].upper()}{words[1:]} |"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _signature(member: object) -> str:
    """Return the arguments of a method, without their types; nothing for a property."""
    if not inspect.isfunction(member):
        return ""
    given = inspect.signature(member).parameters.values()
    named = [one.replace(annotation=one.empty) for one in given if one.name != "self"]
    return str(inspect.Signature(named))


def rig_schema() -> str:
    """Return the JSON schema of rig.toml, made from the model that reads it."""
    return json.dumps(RigFile.model_json_schema(), indent=2) + "\n"


def lab_schema() -> str:
    """Return the JSON schema of lab.toml, made from the model that reads it."""
    return json.dumps(Lab.model_json_schema(), indent=2) + "\n"


def decision_page() -> str:
    """Return the index of all decisions: number, title, status with its date."""
    lines = [
        "# Decisions",
        "",
        "Written by `make docs` from the records.",
        "",
        "| decision | status |",
        "|---|---|",
    ]
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title, _, status = path.read_text(encoding="utf-8").splitlines()[:3]
        lines.append(f"| [{title.removeprefix('# ')}]({path.name}) | {status.removeprefix('Status: ')} |")
    return "\n".join(lines) + "\n"


def stream_page() -> str:
    """Return the table of the headset's streams, made from their objects."""
    lines = [
        "# Streams of the headset",
        "",
        "Written by `make docs` from `kitchensync/sensors/hololens/streams`, one file a stream.",
        "Rates and losses are those of the default profile; the manifest of a recording says its own",
        "(`format.loses`). Payloads that do not fit the layout on disk are kept as a blob.",
        "",
        "| stream | port | packets/s | pose | on disk | loses | file |",
        "|---|---|---|---|---|---|---|",
    ]
    for stream in STREAMS.values():
        loses = "; ".join(stream.details(Profile())["loses"]) or "nothing"
        on_disk = layout_of(f"hololens/{stream.name}").name
        facts = [
            stream.port,
            f"{stream.rate_hz(Profile()):g}",
            "yes" if stream.has_pose else "no",
            on_disk,
            loses,
        ]
        file = f"{stream.module.rpartition('.')[2]}.py"
        lines.append(f"| `{stream.name}` | {' | '.join(map(str, facts))} | `{file}` |")
    return "\n".join(lines) + "\n"


def rule_page() -> str:
    """Return the table of what a running recording is judged by."""
    lines = [
        "# What is said of a running recording",
        "",
        "Written by `make docs` from `kitchensync/capture/monitor/rules.py`.",
        "`kitchensync top` shows it in the words for the operator, `/metrics` as `kitchensync_finding{rule=...}`.",
        "Of a stream, camera or process the first rule that holds is said. By which faults each is seen, and why",
        "some cannot be: [live faults](live-faults.md).",
        "",
        "| rule | of a | severity | the cook reads | the operator reads | what to do |",
        "|---|---|---|---|---|---|",
    ]
    for rule in RULES:
        words = [
            f"`{rule.name}`",
            rule.of,
            rule.severity,
            rule.cook or "nothing",
            f"`{rule.operator}`",
            rule.do,
        ]
        lines.append(f"| {' | '.join(words)} |")
    of_network = ", ".join(f"`{rule.name}`" for rule in RULES if rule.is_of_network)
    busy = TOO_BUSY.replace("{waits_percent:.0f}", "N")
    lines += ["", f"Of {of_network} another thing is said where the network is not to blame: where programs"]
    lines += [
        f"waited for a processor more than {BUSY_PERCENT:g} % of the time, *{busy}*, and then the same as else;"
    ]
    lines += [f"of a device at a loopback address, *{ON_THIS_COMPUTER}*."]
    return "\n".join(lines) + "\n"


def verdict_page() -> str:
    """Return the page of faults and verdicts with its limits; `make verdicts` writes the table of faults."""
    return with_limits((DOCS / "reference/faults-and-verdicts.md").read_text(encoding="utf-8"))


COMMITTED = {
    "explanation/architecture.md": architecture_page,
    "pictures/architecture.svg": architecture_drawing,
    "reference/faults-and-verdicts.md": verdict_page,
    "reference/rig.schema.json": rig_schema,
    "reference/lab.schema.json": lab_schema,
}
"""Read from a clone, by people or by their editors, or generated in part only."""
BUILT = {
    "reference/live-rules.md": rule_page,
    "reference/headset-streams.md": stream_page,
    "reference/data-dictionary.md": dictionary_page,
    "reference/answers.md": partial(answers_page, kitchensync),
    "reference/commands.md": command_page,
    "reference/python-api.md": api_page,
    "decisions/README.md": decision_page,
}
"""Written by `make docs` and `make site`; `.gitignore` has the same names."""


def main() -> int:
    """Write or check; return the exit code."""
    check = "--check" in sys.argv[1:]
    stale = []
    for name, make in (COMMITTED | BUILT).items():
        path, content = DOCS / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        if not check:
            path.write_text(content, encoding="utf-8")
        elif name in COMMITTED:
            stale.append(name)
    for name in stale:
        print(f"docs/{name} is out of date: run `make docs`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
