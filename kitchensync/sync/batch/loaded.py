"""Everything that a worker needs, loaded once in the server that workers are forked from.

What is loaded stays: the collector of garbage neither looks through it while it grows nor, in every worker again,
after it, which would also copy its pages.
"""

from __future__ import annotations

import gc

gc.disable()

import av  # noqa: E402, F401
import pyarrow.parquet  # noqa: E402, F401

import kitchensync.sync.synchronize  # noqa: E402, F401

gc.freeze()
gc.enable()
