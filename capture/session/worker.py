"""One process of a recording, or the server that such processes are forked from.

python -P -m kitchensync.capture.session.worker [ROLE PLAN NAME [--end]]
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from kitchensync.capture.drain.drainer import drainer_of
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.fork_server import serve
from kitchensync.capture.process.worker_process import Process, run_process
from kitchensync.capture.produce.producer import producer_of

ROLES: dict[str, Callable[[Plan, str], Process]] = {"producer": producer_of, "drainer": drainer_of}

if __name__ == "__main__":
    words = sys.argv[1:] or serve()
    if words:
        role, plan, name, *options = words
        run_process(ROLES[role], role, plan, name, options)
