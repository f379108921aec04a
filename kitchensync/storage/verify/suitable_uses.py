"""Suitable uses of a recording, in sentences a researcher can act on. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kitchensync.storage.verify.coverage import Span, length_of
from kitchensync.storage.verify.session_span import SessionTimes
from kitchensync.storage.verify.steps import StepTime, in_words, touched

MOST_HOLES = 4
END_S = 0.05
"""A hole that ends so close to the session's end is its end."""


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
    """Say for each stream or camera with holes where not to use it; in one sentence where all is there.

    Nothing of what was `paused` for privacy is to be used, whatever is there.
    """
    shorts = Counter(name.rpartition("/")[2] for name in holes)
    found = touched(steps, paused)
    of_what = f"for {in_words(found)}" if found else "what lies there"
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
    told: Callable[[float], str] = clock,
) -> str:
    """Report where not to use a stream with holes; `told` writes the seconds that are named."""
    (first_s, until_s), (last_s, end_s) = holes[0], holes[-1]
    begins, is_one, where = first_s <= session.start_s + END_S, len(holes) == 1, "there"
    if begins and until_s >= session.stop_s - END_S:
        what, where = f"{name} holds nothing of the session", "at all" if is_one else "there"
    elif is_one and end_s >= session.stop_s - END_S:
        what, where = f"{name} ends at {told(last_s)}", "after that"
    elif is_one and begins:
        what, where = f"{name} begins at {told(until_s)}", "before that"
    elif len(holes) <= MOST_HOLES:
        what = f"{name} has nothing from {' and '.join(f'{told(a)} to {told(b)}' for a, b in holes)}"
    else:
        longest = max(holes, key=lambda hole: hole[1] - hole[0])
        what = (
            f"{name} has {len(holes)} holes of {length_of(holes):.1f} s together,"
            f" the longest from {told(longest[0])} to {told(longest[1])}"
        )
    if found := touched(steps, holes):
        return f"{what}: do not use for {in_words(found)}"
    return f"{what}: {'no step lies there' if steps else 'do not use it ' + where}"
