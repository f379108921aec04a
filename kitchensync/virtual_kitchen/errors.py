"""What can go wrong in the virtual kitchen, each said in one line for a person."""


class KitchenError(Exception):
    """Name the thing that cannot be served and what to do."""

    exit_code = 1


class PortBusy(KitchenError):
    """Name the address that cannot be listened on."""

    def __init__(self, host: str, port: int, what: str, reason: str = "Address already in use") -> None:
        super().__init__(
            f"{host}:{port} ({what}): {reason}; stop what listens there or choose another address"
        )


class BadReplay(KitchenError):
    """Name the replay that cannot be read and why."""
