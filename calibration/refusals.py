"""Refusals of the commands as one JSON object, where scripts listen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def refusals(as_json: bool, schema: str = "calibrate/1") -> Iterator[None]:
    """Print an expected error as one JSON object too; the error goes on to become one line on stderr, exit 1."""
    from calibration.errors import CalibrationError, Refused
    from sensors.errors import SensorError
    from storage.errors import StorageError

    try:
        yield
    except (CalibrationError, StorageError, SensorError) as error:
        if as_json:
            reason = error.reason if isinstance(error, Refused) else " ".join(str(error).split())
            click.echo(json.dumps({"schema": schema, "status": "refused", "reason": reason}))
        raise
