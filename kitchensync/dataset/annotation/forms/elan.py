"""ELAN files (.eaf): steps on tiers without overlaps, in whole milliseconds.

A second file has nanoseconds by annotation number; they count if the annotation was not moved in ELAN.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kitchensync.dataset.annotation.forms.label_config import parse_xml
from kitchensync.dataset.annotation.forms.marked_steps import NOBODY, Marked, TimedMark
from kitchensync.shell.untrusted_json import BadJson, parse_object
from kitchensync.task_graphs.errors import BadGraph

TIMES = ".times.json"
"""Suffix of the file of nanoseconds, after the name of the .eaf."""
SCHEMA = "elan-times/1"
PROXY = "kitchensync.proxy_sha256"
_NS_IN_MS = 10**6
_SCHEMA_PLACE = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"


def write_elan(marked: Marked, film: str, *, utc_s: int) -> tuple[bytes, bytes]:
    """Return an .eaf and its file of nanoseconds; `film` is the path of the video relative to the .eaf."""
    ordered = sorted(marked.marks, key=lambda mark: (mark.start_ns, mark.end_ns))
    numbered = [(f"a{number}", mark) for number, mark in enumerate(ordered, 1)]
    date = datetime.fromtimestamp(utc_s, UTC).isoformat()
    root = Element("ANNOTATION_DOCUMENT", AUTHOR="", DATE=date, FORMAT="3.0", VERSION="3.0")
    root.set(_SCHEMA_PLACE, "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    header = SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    SubElement(header, "MEDIA_DESCRIPTOR", MEDIA_URL=film, RELATIVE_MEDIA_URL=film, MIME_TYPE="video/mp4")
    for name, text in ((PROXY, marked.proxy_sha256 or ""), ("lastUsedAnnotationId", str(len(numbered)))):
        SubElement(header, "PROPERTY", NAME=name).text = text
    order, slots = SubElement(root, "TIME_ORDER"), dict[tuple[str, int], str]()
    ends = sorted(
        (_ms(mark.start_ns, mark.end_ns)[side], number, side) for number, mark in numbered for side in (0, 1)
    )
    for place, (at_ms, number, side) in enumerate(ends, 1):
        SubElement(order, "TIME_SLOT", TIME_SLOT_ID=f"ts{place}", TIME_VALUE=str(at_ms))
        slots[number, side] = f"ts{place}"
    for name, tier in _tiers(numbered):
        by = tier[0][1].by if tier else ""
        element = SubElement(root, "TIER", TIER_ID=name, LINGUISTIC_TYPE_REF="step", ANNOTATOR=by)
        for number, mark in tier:
            inner = SubElement(
                SubElement(element, "ANNOTATION"), "ALIGNABLE_ANNOTATION", ANNOTATION_ID=number
            )
            for side in (0, 1):
                inner.set(f"TIME_SLOT_REF{side + 1}", slots[number, side])
            SubElement(inner, "ANNOTATION_VALUE").text = mark.label
    SubElement(root, "LINGUISTIC_TYPE", LINGUISTIC_TYPE_ID="step", TIME_ALIGNABLE="true",
               GRAPHIC_REFERENCES="false")  # fmt: skip
    indent(root)
    exact = {number: [mark.start_ns, mark.end_ns] for number, mark in numbered}
    times = json.dumps({"schema": SCHEMA, "ns": exact}, indent=1) + "\n"
    return tostring(root, encoding="utf-8", xml_declaration=True) + b"\n", times.encode()


def _ms(start_ns: int, end_ns: int) -> tuple[int, int]:
    """Return whole milliseconds; an annotation in ELAN must have a length."""
    start = _round(start_ns)
    return start, max(start + 1, _round(end_ns))


def _round(ns: int) -> int:
    return (ns + _NS_IN_MS // 2) // _NS_IN_MS


def _tiers(numbered: list[tuple[str, TimedMark]]) -> Iterable[tuple[str, list[tuple[str, TimedMark]]]]:
    """Yield the tiers of each person, so that no two annotations of a tier overlap."""
    for by in sorted({mark.by for _, mark in numbered}):
        tiers: list[list[tuple[str, TimedMark]]] = [[]]
        for number, mark in numbered:
            if mark.by != by:
                continue
            start_ms = _ms(mark.start_ns, mark.end_ns)[0]
            free = (
                tier
                for tier in tiers
                if not tier or _ms(tier[-1][1].start_ns, tier[-1][1].end_ns)[1] <= start_ms
            )
            tier = next(free, None)
            if tier is None:
                tiers.append(tier := [])
            tier.append((number, mark))
        for place, tier in enumerate(tiers, 1):
            yield " ".join(["steps of", by, *([str(place)] if place > 1 else [])]), tier


def parse_elan(content: bytes, times: bytes | None, name: str) -> Marked:
    """Read an .eaf, and its nanoseconds if there are any. Raises BadGraph."""
    root = parse_xml(content, name)
    if root.tag != "ANNOTATION_DOCUMENT":
        raise BadGraph(name, "", "is not an ELAN file")
    exact = _exact_ns(times, f"{name}{TIMES}") if times else {}
    slots = {
        str(slot.get("TIME_SLOT_ID")): _whole(slot.get("TIME_VALUE"), "TIME_SLOT", name)
        for slot in root.iter("TIME_SLOT")
    }
    # Prefer the video: a sound file may have another time origin.
    media = list(root.iter("MEDIA_DESCRIPTOR"))
    films = (descriptor for descriptor in media if descriptor.get("MIME_TYPE", "").startswith("video"))
    film = next(films, media[0] if media else Element("MEDIA_DESCRIPTOR"))
    origin_ns = (_whole(film.get("TIME_ORIGIN"), "TIME_ORIGIN", name) or 0) * _NS_IN_MS
    marks, untimed = [], []
    for tier in root.iter("TIER"):
        times_ms = slots | _interpolated(tier, slots)
        for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
            place = f"annotation {annotation.get('ANNOTATION_ID', '?')}"
            start, end = (times_ms.get(str(annotation.get(f"TIME_SLOT_REF{side}"))) for side in (1, 2))
            if start is None or end is None:
                untimed.append(place)
                continue
            ns = exact.get(str(annotation.get("ANNOTATION_ID")))
            if ns is None or _ms(*ns) != (start, end):
                ns = [start * _NS_IN_MS, end * _NS_IN_MS]
            label = (annotation.findtext("ANNOTATION_VALUE") or "").strip()
            by = tier.get("ANNOTATOR") or tier.get("PARTICIPANT") or NOBODY
            marks.append(TimedMark(label, ns[0] + origin_ns, ns[1] + origin_ns, by, place))
    stem = PurePosixPath(unquote(film.get("MEDIA_URL", ""))).stem or name.removesuffix(".eaf")
    proxy = next((element.text for element in root.iter("PROPERTY") if element.get("NAME") == PROXY), None)
    return Marked(stem, tuple(marks), proxy or None, tuple(untimed))


def _interpolated(tier: Element, slots: dict[str, int | None]) -> dict[str, int]:
    """Return times of untimed slots between adjacent annotations, evenly spaced as in ELAN."""
    chains: list[list[str]] = []
    for annotation in tier.iter("ALIGNABLE_ANNOTATION"):
        start, end = (str(annotation.get(f"TIME_SLOT_REF{side}")) for side in (1, 2))
        if chains and chains[-1][-1] == start:
            chains[-1].append(end)
        else:
            chains.append([start, end])
    times = {}
    for chain in chains:
        timed = [(place, at) for place, slot in enumerate(chain) if (at := slots.get(slot)) is not None]
        for (first, from_ms), (last, to_ms) in pairwise(timed):
            for place in range(first + 1, last):
                times[chain[place]] = from_ms + round((to_ms - from_ms) * (place - first) / (last - first))
    return times


def _whole(text: str | None, place: str, name: str) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise BadGraph(name, place, f"{text[:20]!r} is not a number of milliseconds")
    return int(text)


def _exact_ns(content: bytes, name: str) -> dict[str, list[int]]:
    try:
        times: Any = parse_object(content).get("ns")
    except BadJson as error:
        raise BadGraph(name, "", str(error)) from error
    if not isinstance(times, dict):
        raise BadGraph(name, "", "holds no times")
    for number, ends in times.items():
        if not (isinstance(ends, list) and len(ends) == 2 and all(type(end) is int for end in ends)):
            raise BadGraph(name, number, "not two times in nanoseconds")
    return times
