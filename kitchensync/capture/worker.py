"""Run one process of a recording, a producer or a drainer; importing this module imports all that both need.

python -P -m kitchensync.capture.worker ROLE PLAN NAME [--end]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from kitchensync.capture.drain.drainer import Drainer
from kitchensync.capture.plan import Plan
from kitchensync.capture.process.worker_process import Process, run_process
from kitchensync.capture.produce.producer import producer_of

ROLES: dict[str, Callable[[Plan, str], Process]] = {
    "producer": producer_of,
    "drainer": lambda plan, number: Drainer(plan, int(number)),
}


def work(arguments: Sequence[str]) -> None:
    """Run the process with these command line arguments to its end."""
    role, plan, name, *options = arguments
    run_process(ROLES[role], role, plan, name, options)


if __name__ == "__main__":
    work(sys.argv[1:])
