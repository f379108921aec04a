"""Iterate over the depth frames of a recording, with checkpoints every half minute for resuming."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kitchensync.calibration.space.partial import Partial
from kitchensync.reader.cameras.depth_views import DepthSource, DepthView

Progress = Callable[[float, float, str], None]
"""Called with frames done, frames in all, and the name of the stream."""


class DepthWalk:
    """Iterates over depth frames for one output file."""

    def __init__(
        self,
        source: DepthSource,
        start_s: float,
        end_s: float,
        out: Path,
        inputs: list[Any],
        *,
        force: bool = False,
    ) -> None:
        """Load a checkpoint for the same depth and other `inputs`. Raises Refused if no frame has a pose."""
        self.source, self.out = source, out
        self.rows = source.rows(start_s, end_s)
        all_inputs = [source.name, len(source.ticks), self.rows.rows.start, self.rows.rows.stop, *inputs]
        self._partial = Partial(out, {"of": all_inputs}, force=force)
        state = self._partial.begin()
        self.saved = self._partial.folder / state["file"] if state else None
        """File of the checkpoint of an interrupted run."""
        self._next = int(state.get("next", self.rows.rows.start))
        self.pictures, self.wrapped = int(state.get("pictures", 0)), int(state.get("wrapped", 0))
        source.bright = float(state.get("bright", 0.0))

    def views(
        self, save: Callable[[Path], None], ending: str, progress: Progress | None
    ) -> Iterator[DepthView]:
        """Yield the frames of one world frame; `save` writes the result of the frames so far as a checkpoint."""
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
        """Remove the checkpoint and return the first fields of the answer."""
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
