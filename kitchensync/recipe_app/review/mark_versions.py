"""Keep what was marked in the browser among the recording's annotations, in the form that all of them have."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from kitchensync.storage.recording_files.annotation_folder import add_version

SOURCE = "reviewer"


def keep_marks(
    recording: Path,
    facts: dict[str, Any],
    annotation: int,
    by: str,
    regions: list[dict[str, Any]],
    marks: list[dict[str, Any]],
) -> int:
    """Keep somebody's marks as a version of the steps; return its number. The same again makes no new one.

    Raises BadAnnotations, OSError.
    """
    fps = "/".join(map(str, facts["fps"])) if facts["fps"][1] != 1 else str(facts["fps"][0])
    content = {
        "source": SOURCE,
        "task": None,
        "annotation": annotation,
        "author": by,
        "was_cancelled": False,
        "kept_utc_ns": time.time_ns(),
        "film": {"fps": fps, "frames": facts["frames"], "proxy_sha256": facts["sha256"]},
        "raw": {"result": regions, "marks": marks},
    }
    return add_version(recording, content)[0]
