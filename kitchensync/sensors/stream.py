"""What is fixed about one stream of a sensor: all that queue, disk, verdict and viewer need to know of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Format = dict[str, Any]
"""What the manifest says about a stream: JSON-able, whatever a reader needs to decode a payload."""


RECORD = "record"
"""Key of the format under which the record of a stream stands: a list of `[field, type]`, types as NumPy's."""


def record_of(form: Format) -> np.dtype | None:
    """Return the record that a stream's description names; None where it names none, or one of other than numbers."""
    described = form.get(RECORD)
    if not isinstance(described, list):
        return None
    try:
        record = np.dtype([(str(name), str(kind)) for name, kind in described])
    except (TypeError, ValueError, SyntaxError):  # of NumPy's own parser of types
        return None
    is_plain = all(record[name].kind in "biuf" for name in record.names or ())
    return record if is_plain and record.itemsize else None


def decode_nothing(payload: bytes) -> Any:
    """Give the payload as it came: of these bytes nobody here knows more."""
    return payload


def accept(payload: bytes, form: Format) -> None:
    """Find nothing wrong with a payload."""


@dataclass(frozen=True, eq=False)
class SensorStream:
    """One stream of a sensor; what is left out has a value that fits any bytes."""

    name: str
    nominal_hz: float = 0.0
    "Packets a second, 0 where nobody can say."
    max_payload_bytes: int = 1 << 20
    "A packet beyond this is an error of the sensor."
    adaptive: bool = False
    "True when the sensor changes its rate by itself, which is no loss."
    format: Format = field(default_factory=dict)
    "Whatever a reader needs to decode a payload; kept in the manifest."
    record: np.dtype | None = None
    """Every payload is a whole number of these: it is stored as a typed table, and any reader can take it apart.

    Fields of a plug-in's record are single numbers."""
    check: Callable[[bytes, Format], None] = accept
    "Raises SensorError where a payload cannot be decoded, by its form alone: it sees every packet of a recording."
    decode: Callable[[bytes], Any] = decode_nothing
    "Takes a payload apart. Raises SensorError."
    encode: Callable[..., bytes] | None = None
    "The inverse of `decode`, where there is one."

    @property
    def kept_format(self) -> Format:
        """What the manifest keeps: the format, and the record, so that whoever lacks the plug-in can read it."""
        if self.record is None:
            return self.format
        fields = [[name, self.record[name].str] for name in self.record.names or ()]
        return {**self.format, RECORD: fields}
