"""How often a property is tried: few and fixed examples in `make test`, many and new ones in `make test-all`."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

IS_DEEP = os.environ.get("KITCHENSYNC_EXAMPLES") == "deep"
QUICK_COUNT, QUICK_SHARE = 25, 5
"Without a count of its own; of a count of its own one in so many."

# How long an example takes is no property of the code: a loaded computer must not fail the suite.
settings.register_profile("quick", max_examples=QUICK_COUNT, derandomize=True, deadline=None)
settings.register_profile("deep", deadline=None)


def examples(count: int, **more: Any) -> Any:
    """Try a property with so many examples in `make test-all`, with a part of them in `make test`."""
    return settings(max_examples=count if IS_DEEP else max(count // QUICK_SHARE, 1), **more)
