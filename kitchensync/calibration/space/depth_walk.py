"""One way through the depth of a recording: pictures in turn, kept every half minute, taken up after a cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kitchensync.calibration.space.partial import Partial
from kitchensync.reader.cameras.depth_views import DepthSource, DepthView

Progress = Callable[[float, float, str], None]
"""Pictures done, pictures in all, words."""


class DepthWalk:
    """Goes once through some pictures of a depth stream for one file that is made of them."""

    def __init__(
        self,
        source: DepthSource,
        start_s: float,
        seconds: float | None,
        out: Path,
        request: list[Any],
        *,
        force: bool = False,
    ) -> None:
        """`request` is what the file depends on beside the depth. Raises Refused when no picture has a pose."""
        self.source, self.out = source, out
        self.rows = source.rows(start_s, seconds)
        of = [source.name, len(source.ticks), self.rows.rows.start, self.rows.rows.stop, *request]
        self._partial = Partial(out, {"of": of}, force=force)
        state = self._partial.begin()
        self.kept: Path | None
        "What was saved when the work was cut off."
        self.kept = self._partial.folder / state["file"] if state else None
        self._next = int(state.get("next", self.rows.rows.start))
        self.pictures, self.wrapped = int(state.get("pictures", 0)), int(state.get("wrapped", 0))
        source.bright = float(state.get("bright", 0.0))

    def views(
        self, save: Callable[[Path], None], ending: str, progress: Progress | None
    ) -> Iterator[DepthView]:
        """Yield the pictures of one world; `save` writes down what was made of those that were yielded so far."""
        rows, source = self.rows.rows, self.source
        for view in source.views(self._next, rows.stop):
            if view.world == self.rows.world:
                self.pictures, self.wrapped = self.pictures + 1, self.wrapped + view.wrapped
                yield view
            following = view.row + 1
            if progress is not None:
                progress(following - rows.start, len(rows), source.name)
            if self._partial.due:
                file = f"until-{following}{ending}"
                save(self._partial.folder / file)
                self._partial.keep(
                    {
                        "file": file,
                        "next": following,
                        "pictures": self.pictures,
                        "wrapped": self.wrapped,
                        "bright": source.bright,
                    }
                )

    def done(self, schema: str, recording: str) -> dict[str, Any]:
        """Put away what was kept on the way, and return the head of the answer."""
        self._partial.remove()
        return {
            "schema": schema,
            "recording": recording,
            "status": "ok",
            "path": str(self.out),
            "stream": self.source.name,
            "pictures": self.pictures,
            "left_out": self.rows.skipped(self.source.stream),
            "world": self.rows.world,
            "wrapped_pixels": self.wrapped,
        }
