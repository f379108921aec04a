"""The port of a clustered queue server."""

from __future__ import annotations

from rehearsal.clustered import _free_port


def test_the_bus_of_a_cluster_has_a_port_too() -> None:
    assert all(0 < _free_port() <= 65535 - 10_000 for _ in range(100))
