"""Running recordings on a terminal: a table a recording, what is wrong first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kitchensync.shell.answer import size_words

BARS = " ▁▂▃▄▅▆▇█"
STYLES = {"recording": "bold green", "starting": "yellow", "stopping": "yellow"}
SEVERITY_STYLES = {"alarm": "bold red", "warning": "yellow"}


def rate_line(rates_hz: Sequence[float], nominal_hz: float | None, width: int = 20) -> str:
    """Draw rates as bars: the highest is the nominal rate, or the highest of all where there is none."""
    top = nominal_hz or max(rates_hz, default=0.0)
    if not top:
        return ""
    return "".join(BARS[min(round(rate / top * 8), 8)] for rate in rates_hz[-width:])


def screen(recordings: list[dict[str, Any]]) -> RenderableType:
    """Return what is to be shown."""
    if not recordings:
        return Text("nothing is being recorded")
    return Group(*(part for one in recordings for part in _recording(one)))


def _recording(one: dict[str, Any]) -> list[RenderableType]:
    style = STYLES.get(one["health"], "bold red")
    parts: list[RenderableType] = [Text.assemble(f"{one['recording']}  ", (one["health"], style))]
    if one["news_s"] is None or one["health"] == "unknown":
        parts.append(Text("its recorder does not answer: nothing is known of it", style="bold red"))
    for finding in one["findings"]:
        style = SEVERITY_STYLES[finding["severity"]]
        parts.append(Text(f"{finding['operator']}; {finding['do']}", style=style))
    if "streams" in one:
        parts += [_streams(one), *_cameras(one), _disk(one), *_stores(one), *_clocks(one), _processes(one)]
    return [*parts, Text("")]


def _streams(one: dict[str, Any]) -> Table:
    table = Table("stream", "state", "packets/s", "nominal", "last", "packets", "not on disk", box=None)
    table.add_column("rate of the last looks")
    severities = {finding["subject"]: finding["severity"] for finding in reversed(one["findings"])}
    for name, facts in one["streams"].items():
        style = SEVERITY_STYLES.get(severities.get(name, ""), "")
        table.add_row(
            Text(name, style=style),
            Text(str(facts["state"] or "starting"), style=style),
            f"{facts['rate_hz']:.1f}",
            f"{facts['nominal_hz'] or 0:g}",
            f"{facts['silent_s']:.1f} s",
            str(facts["received"] or 0),
            str(facts["waiting"]),
            rate_line(facts["rates_hz"], facts["nominal_hz"]),
        )
    return table


def _cameras(one: dict[str, Any]) -> list[Text]:
    said = {"battery_percent": "battery {} %", "minutes_left": "{:.0f} min on the card", "recorded_s": "{} s"}
    lines = []
    for name, facts in one["cameras"].items():
        known = [words.format(facts[key]) for key, words in said.items() if facts[key] is not None]
        lines.append(Text(", ".join([f"{name}: {facts['state']}", *known])))
    return lines


def _disk(one: dict[str, Any]) -> Text:
    disk = one["disk"]
    if not disk:
        return Text("disk: not looked at yet")
    left = "hours" if disk["minutes_left"] is None else f"{disk['minutes_left']:.0f} min"
    return Text(f"disk: {size_words(disk['free_bytes'])} free, {left} left")


def _stores(one: dict[str, Any]) -> list[Text]:
    return [
        Text(
            f"{store['target']}: {store['files_done']} of {store['files']} files copied, "
            f"{size_words(store['bytes'] - store['bytes_safe'])} to go"
        )
        for store in one["stores"]
    ]


def _clocks(one: dict[str, Any]) -> list[Text]:
    probes = {
        name: facts["probes"] for name, facts in one["processes"].items() if facts["probes"] is not None
    }
    return [Text(f"{name}: {count} clock answers", style="dim") for name, count in probes.items()]


def _processes(one: dict[str, Any]) -> Text:
    used = [
        f"{name} {facts['cpu_share'] * 100:.0f} % {size_words(facts['memory_bytes'])}"
        for name, facts in one["processes"].items()
        if facts["cpu_share"] is not None
    ]
    return Text("CPU and memory: " + ", ".join(used), style="dim")
