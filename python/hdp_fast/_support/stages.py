"""Stages of long runs, told to whoever listens to the logger "hdp_fast" at INFO."""

from __future__ import annotations

import logging

_LOGGER = logging.getLogger("hdp_fast")


def log_stage(text: str, *sizes: object) -> None:
    """Log that a stage begins or ends.

    text: what logging formats, the name of the stage in it. sizes: public numbers and names alone:
    nothing that depends on a private value before it is released.
    """
    _LOGGER.info(text, *sizes)
