"""Records of plug-in sensors: columns of numbers, readable without the plug-in, as the manifest declares them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kitchensync.reader.headset_streams import PacketStream
from kitchensync.reader.timed_stream import LONGEST_GAP_S, interpolated
from kitchensync.sensors.stream import record_of
from kitchensync.shell.array_types import Floats, Int64

GAP_STEPS = 3.0
"""Records have a gap between them if they are more than this many median steps and more than 0.1 s apart."""


class RecordStream(PacketStream):
    """Records of a plug-in sensor: `s["grams"]` is a column (n,), `s[i]` a record."""

    kind = "records"

    @cached_property
    def _read(self) -> tuple[npt.NDArray[np.void], Int64]:
        """All records (n,) outside privacy pauses, and the packet of each."""
        record, hidden = record_of(self.stored.format), self.stored.hidden
        assert record is not None, "the manifest declares it"
        parts: list[npt.NDArray[np.void]] = [np.empty(0, record)]
        rows: list[int] = []
        for row, payload in self.stored.packets():
            if hidden[row]:
                continue
            if len(payload) % record.itemsize:
                self.stored.bad[row] = f"{len(payload)} bytes: not a multiple of {record.itemsize}"
                continue
            parts.append(np.frombuffer(payload, record))
            rows += [row] * len(parts[-1])
        return np.concatenate(parts), np.array(rows, np.int64)

    @property
    def values(self) -> npt.NDArray[np.void]:
        """All records, (n,) with the fields that the sensor declared."""
        return self._read[0]

    @cached_property
    def rows(self) -> Int64:
        """The packet of each record, (n,)."""
        return self._read[1]

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.values.dtype.names or ()

    def __getitem__(self, which: Any) -> Any:
        """Return a column by its name, or records by a number, a slice or an array of numbers."""
        if isinstance(which, str):
            if which not in self.fields:
                raise KeyError(f"{self.name} has no column {which}; there are: {', '.join(self.fields)}")
            return self.values[which]
        return super().__getitem__(which)

    def _value(self, number: int) -> Any:
        return self.values[number]

    def _several(self, numbers: Int64) -> npt.NDArray[np.void]:
        return self.values[numbers]

    def sample(self, times: npt.ArrayLike) -> Floats:
        """Return the columns at session times (m,), (m, fields) float64; NaN outside and over gaps.

        Floating-point columns are interpolated; integers and flags are those of the nearest record.
        """
        when, own_s = np.atleast_1d(np.asarray(times, np.float64)), self._sorted_times
        values = self.values[self._in_time]
        columns = np.column_stack([values[name].astype(np.float64) for name in self.fields])
        step_s = float(np.median(np.diff(own_s))) if len(own_s) > 1 else 0.0
        sampled = interpolated(own_s, columns, when, max(LONGEST_GAP_S, GAP_STEPS * step_s))
        near = np.searchsorted((own_s[1:] + own_s[:-1]) / 2, when)
        for k, name in enumerate(self.fields):
            if values.dtype[name].kind != "f" and len(own_s):
                sampled[:, k] = np.where(np.isnan(sampled[:, k]), np.nan, columns[near, k])
        return sampled
