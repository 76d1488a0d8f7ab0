"""What the library says of its arguments, in the words of the command line."""

from __future__ import annotations

import re

#: A dict of columns as messages write it, with or without the name of the argument before it.
_COLUMNS = re.compile(r"(?:columns=)?\{('\w+': [^{}]*)\}")
_ENTRY = re.compile(r"'(\w+)': (\[[^\]]*\]|'[^']*'|None|\.\.\.)")
_VALUE = re.compile(r"\b(done|format)='([^']*)'")
_BARE = re.compile(r"\bdone= ")


def as_typed(message: str) -> str:
    """``columns={'states': ['x', 'y']}`` as ``--column states=x,y``, ``done='ended'`` as ``--done ended``."""
    message = _COLUMNS.sub(lambda found: " ".join(_option(*entry) for entry in _ENTRY.findall(found[1])), message)
    return _BARE.sub("--done ", _VALUE.sub(r"--\1 \2", message))


def _option(role: str, value: str) -> str:
    names = "" if value == "None" else ",".join(re.findall(r"'([^']*)'", value)) or "..."
    text = f"{role}={names}"
    return f"--column '{text}'" if " " in text else f"--column {text}"
