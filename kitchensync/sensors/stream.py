"""Description of one stream of a sensor, as queue, disk, verification and viewer need it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Format = dict[str, Any]
"""The manifest's description of a stream: JSON with what a reader needs to decode a payload."""


RECORD = "record"
"""Key of the format for the record of a stream: a list of `[field, type]` with NumPy's type names."""


def record_of(form: Format) -> np.dtype | None:
    """Return the record in a stream's description; None without one, or if it has other fields than numbers."""
    fields = form.get(RECORD)
    if not isinstance(fields, list):
        return None
    try:
        record = np.dtype([(str(name), str(kind)) for name, kind in fields])
    except (TypeError, ValueError, SyntaxError):  # NumPy parses type names with Python's own parser
        return None
    is_plain = all(record[name].kind in "biuf" for name in record.names or ())
    return record if is_plain and record.itemsize else None


def decode_nothing(payload: bytes) -> Any:
    """Return the payload unchanged."""
    return payload


def accept(payload: bytes, form: Format) -> None:
    """Accept any payload."""


@dataclass(frozen=True, eq=False)
class SensorStream:
    """One stream of a sensor; the defaults fit any payload."""

    name: str
    nominal_hz: float = 0.0
    "Packets per second, 0 if unknown."
    max_payload_bytes: int = 1 << 20
    "Largest allowed payload; a larger packet is an error of the sensor."
    adaptive: bool = False
    "True if the sensor changes its rate by itself, which is not a loss."
    format: Format = field(default_factory=dict)
    "What a reader needs to decode a payload; stored in the manifest."
    record: np.dtype | None = None
    """Every payload is a whole number of these records: they are stored as a typed table that any reader can decode.

    Fields of a plug-in's record are single numbers."""
    check: Callable[[bytes, Format], None] = accept
    "Raises SensorError for a payload that cannot be decoded. It is called for every packet, so it must be fast."
    decode: Callable[[bytes], Any] = decode_nothing
    "Decodes a payload. Raises SensorError."
    encode: Callable[..., bytes] | None = None
    "The inverse of `decode`, if there is one."

    @property
    def kept_format(self) -> Format:
        """The format as the manifest stores it: with the record, so that it can be read without the plug-in."""
        if self.record is None:
            return self.format
        fields = [[name, self.record[name].str] for name in self.record.names or ()]
        return {**self.format, RECORD: fields}
