"""Every error of the capture side, one base."""


class CaptureError(Exception):
    """Base of all capture errors: one line that names the thing and what to do."""
