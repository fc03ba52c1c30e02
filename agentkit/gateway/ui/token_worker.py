"""The program that reads code with pygments: a line of JSON with a language and a text in, a line with tokens out.

A process, because a lexer's regular expressions may take hours for a hostile text, during which no other thread of
their process runs. It imports nothing of agentkit.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from pygments.lexers import find_lexer_class_for_filename, get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

SECONDS = 2.0
"""How much CPU time one text may take; then the kernel ends the process."""

_PLAIN = ("w", "err")


def read_tokens(language: str, code: str) -> list[tuple[str, str]]:
    """Return the tokens of a text: pygments' short class, empty for plain text, and the characters.

    Args:
        language: as pygments names it, or a file's name.
        code: the text.
    """
    options = {"stripnl": False, "ensurenl": False}
    try:
        lexer: Any = get_lexer_by_name(language, **options)
    except ClassNotFound:
        found = find_lexer_class_for_filename(language)
        if found is None:
            return [("", code)]
        lexer = found(**options)
    tokens: list[tuple[str, str]] = []
    for kind, text in lexer.get_tokens(code):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        name = STANDARD_TYPES[kind]
        name = "" if name in _PLAIN else name
        if tokens and tokens[-1][0] == name:
            tokens[-1] = (name, tokens[-1][1] + text)
        else:
            tokens.append((name, text))
    return tokens if "".join(text for _, text in tokens) == code else [("", code)]


def main() -> None:
    """Answer line by line until the input ends."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        tokens = read_tokens(*json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(tokens), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
