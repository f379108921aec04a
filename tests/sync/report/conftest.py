"""A small recording made by hand, whose truth the tests know: five streams' worth of packets, events, probes."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kitchensync.shell.host_clock import encode as encode_probe
from kitchensync.storage.chunks.chunk_writer import Packet, seal
from kitchensync.storage.events import EventLog
from kitchensync.storage.manifest import write_json

HOST0_NS = 5_000_000_000_000
TICKS0 = 133_000_000_000_000_000
SECONDS = 10.0


def host_ns(seconds: float) -> int:
    """Host time at a second of the recording; the devices' clocks run true."""
    return HOST0_NS + round(seconds * 1e9)


def ticks(seconds: float) -> int:
    """Device ticks at a second of the recording."""
    return TICKS0 + round(seconds * 1e7)


def packets(times_s: list[float], payload: bytes = b"x" * 100, first: int = 0) -> list[Packet]:
    """One packet a time, arriving the moment it was stamped."""
    return [Packet(first + n, 1, ticks(t), host_ns(t), 1, payload, b"") for n, t in enumerate(times_s)]


def store(recording: Path, stream: str, rows: list[Packet], number: int = 1) -> Path:
    """Seal packets as a chunk of a stream."""
    folder = recording.joinpath(*stream.split("/"))
    folder.mkdir(parents=True, exist_ok=True)
    return seal(folder, number, rows, {}).path


def steady(hz: float, start_s: float = 0.0, end_s: float = SECONDS) -> list[float]:
    """Times of a steady stream."""
    return list(np.arange(start_s, end_s, 1.0 / hz))


def manifest(streams: dict[str, float], **more: Any) -> dict[str, Any]:
    """A whole manifest; `streams` maps full names to nominal rates."""
    return {
        "schema": "recording/1",
        "recording": "take-1",
        "uuid": "u",
        "state": "complete",
        "retake_of": None,
        "started": {"host_ns": HOST0_NS - 10**9, "utc_ns": 1_750_000_000 * 10**9},
        "stopped": {"host_ns": host_ns(SECONDS), "utc_ns": 1_750_000_011 * 10**9, "reason": "time"},
        "zone": {"iana": "Europe/Berlin", "utc_offset_s": 7200},
        "consent": "none",
        "pseudonym": "P07",
        "place": "kitchen 3",
        "recipe": None,
        "devices": {"hololens": {"kind": "hololens", "address": "10.0.0.2", "version": "1.0.37.0"}},
        "profile": {
            "hololens": {"link": "wifi", "pv_width": 640, "pv_height": 360, "pv_hz": 30, "pv_codec": "h264"}
        },
        "streams": {
            name: {
                "device": "hololens",
                "port": 1,
                "nominal_hz": hz,
                "format": {"codec": "x", "loses": ["4 mm steps"]},
            }
            for name, hz in streams.items()
        },
        "software": {"kitchensync": "0.1.0"},
        "files": {},
        **more,
    }


def make_recording(path: Path, streams: dict[str, list[float]] | None = None, **more: Any) -> Path:
    """A recording of a gyroscope at 20 Hz with one gap from 4 s to 6 s, a steady accelerometer, clock probes."""
    if streams is None:
        streams = {
            "hololens/gyroscope": [*steady(20, 0, 4.01), *steady(20, 6.0)],
            "hololens/accelerometer": steady(12),
        }
    path.mkdir(parents=True)
    (path / "events").mkdir()
    rates = {"hololens/gyroscope": 20.0, "hololens/accelerometer": 12.0}
    write_json(path / "recording.json", manifest({name: rates.get(name, 30.0) for name in streams}, **more))
    for name, times_s in streams.items():
        if times_s:
            store(path, name, packets(times_s))
    probes = [
        Packet(
            n, 1, ticks(t), host_ns(t), 1, encode_probe(host_ns(t) - 10**6, host_ns(t) + 10**6, ticks(t)), b""
        )
        for n, t in enumerate(steady(1))
    ]
    store(path, "clock/hololens", probes)
    store(path, "ledger/hololens", [_end(n, name) for n, name in enumerate(sorted({*streams, *rates}))])
    return path


def _end(number: int, stream: str) -> Packet:
    """The ledger's note that a stream came to the stop."""
    said = {"note": "end", "stream": stream, "host_ns": host_ns(SECONDS), "reason": "stopped", "received": 0}
    return Packet(number, 1, 0, 0, 1, json.dumps(said).encode(), b"")


def note(recording: Path, kind: str, at_s: float, op_id: str | None = None, **body: Any) -> None:
    """Append one event of the tablet."""
    EventLog(recording, "tablet").append(
        kind, host_ns=host_ns(at_s), uncertainty_ns=2_000_000, op_id=op_id, body=body
    )


def choose(recording: Path, texts: dict[int, str]) -> None:
    """Log the choice of a recipe whose steps are in the order of `texts`."""
    steps = {str(node): {"label": text, "text": text} for node, text in texts.items()}
    frozen = {"name": "tea", "title": "tea", "order": [*texts], "steps": steps, "edges": [], "seed": 11}
    note(recording, "recipe", 0.5, op_id="r", **frozen, planned=[], strategy="normal", display="step")


class Page(HTMLParser):
    """A page read back: its elements, its text, what it would load, and whether its tags close."""

    VOID = frozenset({"meta", "img", "br", "link", "hr", "input"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.badly_closed: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        """All words of the page."""
        return " ".join(" ".join(self.words).split())

    def of_class(self, class_: str) -> list[dict[str, str]]:
        """Attributes of all elements of a class."""
        return [a for _, a in self.elements if class_ in (a.get("class") or "").split()]

    def lanes(self) -> dict[str, list[dict[str, str]]]:
        """What is drawn in each lane, by the first words of its description."""
        found: dict[str, list[dict[str, str]]] = {}
        current: list[dict[str, str]] = []
        for tag, attributes in self.elements:
            if tag == "svg" and attributes.get("class") == "lane":
                current = found.setdefault(attributes["aria-label"].split(" from ")[0].split(":")[0], [])
            else:
                current.append(attributes | {"tag": tag})
        return found

    def loads(self) -> list[str]:
        """Every address that a browser would fetch."""
        names = ("src", "href", "srcset", "data", "poster", "action", "xlink:href")
        return [a[name] for _, a in self.elements for name in names if a.get(name)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.badly_closed.append(tag)

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture(scope="session")
def desk() -> SimpleNamespace:
    """The tools of this page, for tests: they cannot import each other."""
    return SimpleNamespace(
        make_recording=make_recording,
        manifest=manifest,
        note=note,
        choose=choose,
        packets=packets,
        steady=steady,
        store=store,
        host_ns=host_ns,
        ticks=ticks,
        SECONDS=SECONDS,
    )


@pytest.fixture(scope="session")
def report_of():
    """Write the report of a recording and read it back."""
    from kitchensync.sync.report.page import write_report

    def read(recording: Path) -> Page:
        return Page(write_report(recording).read_text(encoding="utf-8"))

    return read


@pytest.fixture(scope="session")
def page_of():
    """Read a page back."""
    return Page
