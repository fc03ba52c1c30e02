"""Commands and options of other command lines. Tables only."""

from __future__ import annotations

from typing import Final

from agentkit.foreign.attributes import Words

STANDARD_INPUT: Final = (
    "text is read from standard input: echo 'Hello' | agentkit …; a single message: agentkit run 'Hello'"
)

CHOICES: Final[Words] = {
    **dict.fromkeys(("talk", "repl", "start"), "chat"),
    **dict.fromkeys(("ask", "prompt", "exec"), "run"),
    **dict.fromkeys(("thread", "sessions", "history"), "threads"),
    **dict.fromkeys(("remove", "rm"), "delete"),
    **dict.fromkeys(("reject", "refuse"), "deny"),
    **dict.fromkeys(("yes", "all", "auto"), "always"),
    "no": "never",
    "help": "write agentkit --help",
    "version": "write agentkit --version",
}
"""Commands of other command lines."""

OPTIONS: Final[Words] = {
    **dict.fromkeys(("--system-prompt", "--instructions"), "--system"),
    **dict.fromkeys(("--url", "--api-base", "--host"), "--base-url"),
    **dict.fromkeys(("--session", "--conversation", "--name"), "--thread"),
    **dict.fromkeys(("--db", "--database"), "--store"),
    **dict.fromkeys(("--yes", "-y", "--auto-approve", "--yolo"), "write --approve always"),
    **dict.fromkeys(("--message", "-m", "--prompt", "-p", "--text", "--input"), STANDARD_INPUT),
    **dict.fromkeys(
        ("--api-key", "--key"), "a key is read from the environment: OPENAI_API_KEY, or the variable of --api-key-env"
    ),
    **dict.fromkeys(("--max-output-tokens", "--max-new-tokens", "--n-predict"), "--max-tokens"),
    **dict.fromkeys(("--max-steps", "--max-iterations"), "--max-turns"),
    **dict.fromkeys(("--engine", "--backend"), "--server"),
    **dict.fromkeys(("--grammar", "--guided", "--strict"), "--constrained"),
}
"""Options of other command lines."""
