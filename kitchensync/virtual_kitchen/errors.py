"""Errors of the virtual kitchen; each message is one line for the user."""


class KitchenError(Exception):
    """Something cannot be served; the message says what to do."""

    exit_code = 1


class PortBusy(KitchenError):
    """An address cannot be listened on."""

    def __init__(self, host: str, port: int, what: str, reason: str = "Address already in use") -> None:
        super().__init__(
            f"{host}:{port} ({what}): {reason}; stop what listens there or choose another address"
        )


class BadReplay(KitchenError):
    """A replay cannot be read."""
