"""Stages of long runs, logged by the logger "hdp_fast" at level INFO."""

from __future__ import annotations

import logging

_LOGGER = logging.getLogger("hdp_fast")


def log_stage(text: str, *sizes: object) -> None:
    """Logs that a stage begins or ends.

    Args:
        text: Format string of the log line, with the name of the stage in it.
        sizes: Public numbers and names alone, nothing that depends on a private value before it is
            released.
    """
    _LOGGER.info(text, *sizes)
