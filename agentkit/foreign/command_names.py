"""Commands and options of other command lines. Tables only."""

from __future__ import annotations

from typing import Final

from agentkit.foreign.attributes import Words, same

STANDARD_INPUT: Final = (
    "text is read from standard input: echo 'Hello' | agentkit …; a single message: agentkit run 'Hello'"
)

CHOICES: Final[Words] = {
    **same("chat", "talk repl start"),
    **same("run", "ask prompt exec"),
    **same("threads", "thread sessions history"),
    **same("delete", "remove rm"),
    **same("deny", "reject refuse"),
    **same("always", "yes all auto"),
    "no": "never",
    "help": "write agentkit --help",
    "version": "write agentkit --version",
}
"""Commands of other command lines."""

OPTIONS: Final[Words] = {
    **same("--system", "--system-prompt --instructions"),
    **same("--base-url", "--url --api-base --host"),
    **same("--thread", "--session --conversation --name"),
    **same("--store", "--db --database"),
    **same("write --approve always", "--yes -y --auto-approve --yolo"),
    **same(STANDARD_INPUT, "--message -m --prompt -p --text --input"),
    **same("a key is read from the environment: OPENAI_API_KEY, or the variable of --api-key-env", "--api-key --key"),
    **same("--max-tokens", "--max-output-tokens --max-new-tokens --n-predict"),
    **same("--max-turns", "--max-steps --max-iterations"),
    **same("--server", "--engine --backend"),
    **same("--constrained", "--grammar --guided --strict"),
}
"""Options of other command lines."""
