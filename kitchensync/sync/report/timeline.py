"""The timeline of a report: one lane a stream, camera file, kind of event and clock, on the axis of the host clock.

Places are percentages, so that lanes stretch from a phone to a desktop while their text keeps its size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from kitchensync.storage.verify.gaps import Gap
from kitchensync.sync.report.cameras import ShownFile
from kitchensync.sync.report.events import Mark
from kitchensync.sync.report.render import clock, count_of, length, whole_clock
from kitchensync.sync.report.streams import ReadStream, ShownTime, TicksToHost

LANE = Markup('<svg class="lane" height="22" role="img" aria-label="{}">{}</svg>')
GRID = Markup('<line x1="{0:.3%}" x2="{0:.3%}" y1="0" y2="22" class="grid"/>')
TICK = Markup('<text x="{:.3%}" y="13" text-anchor="{}">{}</text>')
BAR = Markup('<rect x="{:.3%}" width="{:.3%}" y="4" height="14" rx="3" class="{}"><title>{}</title></rect>')
GAP = Markup('<rect x="{:.3%}" width="{:.3%}" y="1" height="20" class="gap"><title>{}</title></rect>')
CAUSE = Markup('<text x="{:.3%}" y="15" text-anchor="middle" class="cause">{}</text>')
ABSENT = Markup('<text x="1%" y="15" class="absent">{}</text>')
PROBE = Markup('<line x1="{0:.3%}" x2="{0:.3%}" y1="4" y2="18" class="probe"/>')
EVENT = Markup(
    '<svg x="{share:.3%}" y="11" overflow="visible" class="event{undone}"><title>{words}</title>{sign}'
    '<text x="11" y="4" class="number{tight}">{number}</text>{label}</svg>'
)
LABEL = Markup('<text x="{}" y="4" class="wide">{}</text>')
LEAST_GAP = 0.003  # share of the width below which a gap would not be seen
CAUSE_FITS = 0.09  # share of the width from which on the cause is written into the gap
MOST_TICKS = 200
DESKTOP_WIDTH = 900.0
"""Pixels for which labels of events are cut; narrower screens show marks and numbers alone."""
PHONE_WIDTH = 350.0  # pixels below which a number would be covered by the next mark; there it is left out
LETTER = 6.4
MARK_WIDTH = 40.0
FEWEST_LETTERS = 6
CAUSES = {
    "device_rate": "the device itself sent late or left something out",
    "network": "the connection broke",
    "reconnect": "a new connection was made",
    "restart": "the recorder was started again",
    "declared_loss": "packets were given up, and it was noted",
    "queue_loss": "the queue lost them",
    "corrupt_packet": "a packet was garbage",
    "no_space": "the disk was full",
    "suspend": "the computer slept",
    "device_swap": "the device was off or changed: its battery, its card",
}
STEPS_S = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)


@dataclass(frozen=True, slots=True)
class ShownSpan:
    """The part of the time that is shown, in seconds after zero."""

    time: ShownTime
    first_s: float
    last_s: float

    def seconds(self, host_ns: int) -> float:
        """Seconds after zero."""
        return self.time.seconds(host_ns)

    def share(self, seconds: float) -> float:
        """Place on the width, 0 to 1, cut at the ends."""
        return min(max((seconds - self.first_s) / (self.last_s - self.first_s), 0.0), 1.0)

    def ticks(self, most: int = 7) -> list[float]:
        """Round times on the axis."""
        whole = self.last_s - self.first_s
        step = next((s for s in STEPS_S if whole / s <= most), STEPS_S[-1] * (1 + whole // 50_400))
        first = -int(-self.first_s // step)
        return [k * step for k in range(first, int(self.last_s // step) + 1)]


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole of one stream in seconds of the recording."""

    stream: str
    start_s: float
    end_s: float
    cause: str

    @property
    def meaning(self) -> str:
        """What its cause means; empty where the cause says it."""
        return CAUSES.get(self.cause, "")


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: a name, a few words, and the drawing."""

    name: str
    note: str
    drawing: Markup


def holes_of(stream: ReadStream, gaps: Iterable[Gap], time: TicksToHost, span: ShownSpan) -> list[Hole]:
    """Place the gaps of a stream; a gap over a damaged file says so."""
    broken = {damage.before_ticks: damage for damage in stream.damage if damage.before_ticks is not None}
    found = []
    for gap in gaps:
        damage = broken.pop(gap["start_ticks"], None)
        cause = f"damaged file {damage.file}" if damage else str(gap["cause"])
        found.append((gap["start_ticks"], gap["end_ticks"], cause))
    for start, damage in broken.items():
        if damage.after_ticks is not None:
            found.append((start, damage.after_ticks, f"damaged file {damage.file}"))
    holes = []
    for start, end, cause in found:
        start_s, end_s = (span.seconds(time.host_ns(ticks)) for ticks in (start, end))
        holes.append(Hole(stream.name, start_s, max(end_s, start_s), cause))
    return sorted(holes, key=lambda hole: hole.start_s)


def axis_lane(span: ShownSpan) -> Lane:
    """Draw the axis itself."""
    texts = []
    for tick in span.ticks():
        share = span.share(tick)
        anchor = "start" if share < 0.03 else "end" if share > 0.97 else "middle"
        words = whole_clock(tick) if float(tick).is_integer() else clock(tick)
        texts.append(TICK.format(share, anchor, words))
    return Lane("time", "min:s", _drawing("time axis in minutes and seconds", texts, span))


def stream_lane(stream: ReadStream, holes: list[Hole], time: TicksToHost, span: ShownSpan) -> Lane:
    """Draw when a stream delivered, with its holes; those that would look like one on the screen are one."""
    first_s, last_s = (span.seconds(time.host_ns(stream.ticks[row])) for row in (0, -1))
    groups: list[list[Hole]] = []
    for hole in holes:
        if groups and span.share(hole.start_s) < span.share(groups[-1][-1].end_s) + LEAST_GAP:
            groups[-1].append(hole)
        else:
            groups.append([hole])
    shapes = [_bar("have", first_s, last_s, span, f"{stream.name}: {clock(first_s)} to {clock(last_s)}")]
    shapes += [_gap(group, span) for group in groups]
    causes = ", ".join(Counter(hole.cause for hole in holes))
    notes = [f"{count_of(len(holes), 'gap')}: {causes}"] if holes else []
    if any(damage.after_ticks is None for damage in stream.damage):
        notes.append("end damaged")
    note = ", ".join(notes)
    words = f"{stream.name} from {clock(first_s)} to {clock(last_s)}, {note or 'no gap'}"
    return Lane(stream.name, note, _drawing(words, shapes, span))


def _gap(group: list[Hole], span: ShownSpan) -> Markup:
    first, end_s = group[0], max(hole.end_s for hole in group)
    start, end = span.share(first.start_s), span.share(end_s)
    causes = Counter(hole.cause for hole in group)
    words = f"{first.cause}, {length(end_s - first.start_s)} at {clock(first.start_s)}"
    if len(group) > 1:
        counts = ", ".join(f"{n} x {cause}" for cause, n in causes.items())
        words = f"{len(group)} gaps from {clock(first.start_s)}: {counts}"
    gap = GAP.format(start, max(end - start, LEAST_GAP), words)
    return gap + CAUSE.format((start + end) / 2, first.cause) if end - start >= CAUSE_FITS else gap


def empty_lane(name: str, why: str, span: ShownSpan) -> Lane:
    """Draw a lane for what was armed and is not there."""
    return Lane(name, "nothing", _drawing(f"{name}: {why}", [ABSENT.format(why)], span))


def camera_lane(file: ShownFile, span: ShownSpan) -> Lane:
    """Draw where a camera's file lies; a dashed frame when only the shutter's stamps say so."""
    if file.start_host_ns is None or file.end_host_ns is None:
        return empty_lane(file.name, file.problem or "not known when it was recorded", span)
    first_s, last_s = span.seconds(file.start_host_ns), span.seconds(file.end_host_ns)
    words = f"{file.name}: {clock(first_s)} to {clock(last_s)}, {file.placed_by}"
    bar = _bar("camera" if file.clock_map else "camera unsure", first_s, last_s, span, words)
    return Lane(file.name, file.placed_by, _drawing(words, [bar], span))


def event_lane(name: str, marks: list[Mark], span: ShownSpan) -> Lane:
    """Draw marks with number and, where there is room, words."""
    shares = [span.share(mark.at_s) for mark in marks]
    shapes, texts = [], [f"{mark.number} {mark.words} at {clock(mark.at_s)}" for mark in marks]
    for mark, text, share, end in zip(marks, texts, shares, [*shares[1:], 1.0], strict=True):
        room = end - share
        letters = int((room * DESKTOP_WIDTH - MARK_WIDTH) / LETTER)
        label = mark.label if len(mark.label) <= letters else f"{mark.label[: letters - 1]}…"
        shape = EVENT.format(
            share=share,
            undone=" undone" if mark.undone else "",
            words=text,
            sign=mark.sign,
            tight=" tight" if room * PHONE_WIDTH < MARK_WIDTH and mark is not marks[-1] else "",
            number=mark.number,
            label=LABEL.format(17 + 7 * len(str(mark.number)), label) if letters >= FEWEST_LETTERS else "",
        )
        shapes.append(shape)
    return Lane(name, str(len(marks)), _drawing(f"{name}: {'; '.join(texts[:40])}", shapes, span))


def clock_lane(time: TicksToHost, span: ShownSpan) -> Lane:
    """Draw when a device was asked for its time, and how well its clock is known."""
    name = f"clock/{time.device}"
    if not time.from_probes:
        return empty_lane(name, "no clock probes: times are from the arrival of packets", span)
    middles = (time.probes["host_send_ns"] + time.probes["host_receive_ns"]) // 2
    shown = middles[:: -(-len(middles) // MOST_TICKS)]
    shapes = [PROBE.format(span.share(span.seconds(int(moment)))) for moment in shown]
    note = f"{len(middles)} probes, within {time.to_host.bound_ns / 1e6:.2f} ms"
    return Lane(name, note, _drawing(f"{name}: {note}", shapes, span))


def _bar(class_: str, first_s: float, last_s: float, span: ShownSpan, words: str) -> Markup:
    start, end = span.share(first_s), span.share(last_s)
    return BAR.format(start, max(end - start, 0.001), class_, words)


def _drawing(words: str, shapes: list[Markup], span: ShownSpan) -> Markup:
    grid = [GRID.format(span.share(tick)) for tick in span.ticks()]
    return LANE.format(words, Markup("").join([*grid, *shapes]))
