"""Read files of cases strictly: every error names the file and the place."""

from __future__ import annotations

import math
from typing import Any

from kitchensync.shell.untrusted_json import BadJson, parse_json
from kitchensync.task_graphs.formats.strict_json import Reader

MOST_BYTES = 256 << 20


class CaseReader(Reader):
    """Reader of files that hold a list."""

    def cases(self, content: bytes) -> list[dict[str, Any]]:
        """Return the cases of a file that is a list of objects. Raises BadGraph."""
        return [self.object(case, f"[{n}]") for n, case in enumerate(self.values(content))]

    def values(self, content: bytes) -> list[Any]:
        """Return the values of a file that is a list. Raises BadGraph."""
        try:
            values = parse_json(content, most_bytes=MOST_BYTES)
        except BadJson as error:
            raise self.fail("", f"is {error}") from error
        return self.array(values, "")

    def number(self, value: Any, place: str, *, most: float = math.inf) -> float:
        """Return a number; with `most`, a number from 0 to `most`."""
        if type(value) not in (int, float):
            raise self.fail(place, "not a number")
        if most < math.inf and not 0 <= value <= most:
            raise self.fail(place, f"not from 0 to {most:g}")
        return float(value)
