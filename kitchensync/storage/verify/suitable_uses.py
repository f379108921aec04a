"""Describe suitable uses of a recording in sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kitchensync.storage.verify.coverage import Span, length_of
from kitchensync.storage.verify.session_span import SessionTimes, StepTime

MOST_HOLES = 4
END_S = 0.05
"""Tolerance at the ends of the session, seconds."""


def clock(seconds: float) -> str:
    """Write seconds of the session as m:ss, h:mm:ss from an hour on."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def spans_in_words(spans: Sequence[Span], most: int | None = None) -> str:
    """Write spans as `from 0:05 to 0:10, from 0:20 to 0:31`; those beyond `most` are counted."""
    shown = [f"from {clock(first)} to {clock(last)}" for first, last in spans[:most]]
    more = [] if most is None or len(spans) <= most else [f"{len(spans) - most} more"]
    return ", ".join([*shown, *more])


def good_for(
    holes: Mapping[str, Sequence[Span]],
    session: SessionTimes,
    steps: Sequence[StepTime],
    paused: Sequence[Span] = (),
) -> list[str]:
    """Return a sentence for each stream or camera with holes, about where not to use it; or one for all streams.

    Data within `paused` spans must not be used, even if it exists.
    """
    shorts = Counter(name.rpartition("/")[2] for name in holes)
    steps_in_pauses = touched(steps, paused)
    of_what = f"for {steps_in_words(steps_in_pauses)}" if steps_in_pauses else "what lies there"
    sentences = [f"paused for privacy {spans_in_words(paused)}: do not use {of_what}"] if paused else []
    for name, spans in holes.items():
        short = name.rpartition("/")[2]
        if spans:
            sentences.append(sentence(short if shorts[short] == 1 else name, spans, session, steps))
    if sentences or not holes:
        return sentences
    whole = f"everything covers {clock(session.start_s)} to {clock(session.stop_s)}"
    return [f"{whole}: use it for {'every step' if steps else 'all of it'}"]


def sentence(
    name: str,
    holes: Sequence[Span],
    session: SessionTimes,
    steps: Sequence[StepTime],
    write: Callable[[float], str] = clock,
) -> str:
    """Return a sentence about where not to use a stream with holes; `write` formats seconds."""
    (first_s, until_s), (last_s, end_s) = holes[0], holes[-1]
    begins, is_one, where = first_s <= session.start_s + END_S, len(holes) == 1, "there"
    if begins and until_s >= session.stop_s - END_S:
        what, where = f"{name} holds nothing of the session", "at all" if is_one else "there"
    elif is_one and end_s >= session.stop_s - END_S:
        what, where = f"{name} ends at {write(last_s)}", "after that"
    elif is_one and begins:
        what, where = f"{name} begins at {write(until_s)}", "before that"
    elif len(holes) <= MOST_HOLES:
        what = f"{name} has nothing from {' and '.join(f'{write(a)} to {write(b)}' for a, b in holes)}"
    else:
        longest = max(holes, key=lambda hole: hole[1] - hole[0])
        what = (
            f"{name} has {len(holes)} holes of {length_of(holes):.1f} s together,"
            f" the longest from {write(longest[0])} to {write(longest[1])}"
        )
    if steps_in_holes := touched(steps, holes):
        return f"{what}: do not use for {steps_in_words(steps_in_holes)}"
    return f"{what}: {'no step lies there' if steps else 'do not use it ' + where}"


def touched(steps: Sequence[StepTime], holes: Sequence[Span]) -> list[int]:
    """Return the positions of the steps that overlap one of the holes."""
    return sorted({s.position for s in steps for a, b in holes if s.start_s < b and a < s.end_s})


def steps_in_words(positions: Sequence[int]) -> str:
    """Write positions such as `step 3`, `steps 3 and 5`, `steps 3 to 12`; at least one."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    parts = [p for run in runs for p in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))]
    words = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"step{'s' if len(positions) > 1 else ''} {words}"
