"""What the library says of its arguments, in the words of the command line."""

from __future__ import annotations

import re

#: A dict of columns as messages write it, with or without the name of the argument before it.
_COLUMNS = re.compile(r"(?:columns=)?\{('\w+': [^{}]*)\}")
_ENTRY = re.compile(r"'(\w+)': (\[[^\]]*\]|'[^']*'|None|\.\.\.)")
#: What the library writes, and what a user of the command line would: options, or nothing where there is none.
_WORDS = [
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b(done|format)='([^']*)'(?:(?:, '[^']*')*)", lambda found: _option_of(found[1], found[0])),
        (r"\bdone= ", "--done "),
        (r"\bblocks=True\b", "--chain"),
        (r"\bforce=True\b", "--force"),
        (r"\bridge=(?=\d)", "--ridge "),
        (r'\bsolver="(\w+)"(?: or "(\w+)")?', lambda found: "--solver " + " or ".join(filter(None, found.groups()))),
        (r"\bfit_intercept=False\b", "--no-intercept"),
        (r"\b(episodes|actions|probabilities|ratios)=(?=[\s,.;)])", r"--column \1=..."),
        (r"\bpolicy=(?:, next_probabilities= or next_actions=)?(?=[\s,.])", "--policy"),
        # Initial states are the first ones of the episodes here.
        (r"initial_actions need initial_states, or", "--initial-policy needs"),
        (r"\binitial_actions\b", "--initial-policy"),
        (r"(?:: give|, or give) (?:initial|initial_states)(?=[.;])", ""),
        (r" \(groups=\)", ""),
        (r"\bcolumns names (?=')", "--column names "),
        (r"\bthe labels given have none for it", "the model has no numbers for it"),
        (r"\bnot among the labels given", "not among those of the model"),
        # What only Python can do.
        (r", log\[np\.argsort\([^\]]*\)\]", ""),
        (r"[Nn]umber them with np\.unique\([^)]*\)\[1\](?:, or give features of pairs: a function of [^.]*)?",
         "Number them in the file"),
        (r"To fit with them give them to Problem\.from_transitions\([^)]*\), one a row; to read", "To read"),
        (r" \((?:if|or) [^()]*\b(?:last_step|values)=['\"][^()]*\)", ""),
        (r", or (?:average=True|direction=\"saddle\")", ""),
        (r"=\.{4}(?=\s|$)", "=..."),
        (r"name them: load_model\(", "name them in Python: valuate.load_model("),
    )
]  # fmt: skip


def as_typed(message: str) -> str:
    """``columns={'states': ['x', 'y']}`` as ``--column states=x,y``, ``blocks=True`` as ``--chain``, and so on."""
    message = _COLUMNS.sub(lambda found: " ".join(_column(*entry) for entry in _ENTRY.findall(found[1])), message)
    for pattern, instead in _WORDS:
        message = pattern.sub(instead, message)
    return message


def _column(role: str, value: str) -> str:
    names = "" if value == "None" else ",".join(re.findall(r"'([^']*)'", value)) or "..."
    text = f"{role}={names}"
    return f"--column '{text}'" if " " in text else f"--column {text}"


def _option_of(name: str, text: str) -> str:
    """One value or a list of them, without quotes."""
    values = ", ".join(re.findall(r"'([^']*)'", text))
    return f"--{name} {values}"
