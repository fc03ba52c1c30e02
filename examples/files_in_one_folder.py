"""A model that finds, reads and changes files in one folder, and does not get out of it.

Runs offline: `ScriptedModel` stands in for the model, which finds a word, renames it, and then tries to reach what it
must not.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from agentkit import Agent, ToolCall
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.files import Files

model = ScriptedModel(
    [
        ToolCall("", "search_files", {"pattern": r"\bcolour\b", "glob": "*.py", "context": 1}),
        ToolCall(
            "",
            "str_replace",
            {"file_path": "src/paint.py", "old_str": "colour", "new_str": "color", "replace_all": True},
        ),
        ToolCall("", "move", {"file_path": "src/paint.py", "new_path": "src/brush/paint.py"}),
        ToolCall("", "list_files", {}),
        ToolCall("", "read_file", {"file_path": "../secret.txt"}),
        ToolCall("", "create_file", {"file_path": ".git/hooks/pre-commit", "file_contents": "#!/bin/sh\n"}),
        "Renamed and moved; the rest is not allowed.",
    ]
)

with TemporaryDirectory() as folder:
    Path(folder, "secret.txt").write_text("outside")
    work = Path(folder, "work")
    (work / "src").mkdir(parents=True)
    (work / "src/paint.py").write_text("def paint(colour):\n    return colour\n")
    (work / ".gitignore").write_text("build/\n")
    (work / "build").mkdir()
    (work / "build/paint.py").write_text("colour\n")
    result = Agent(model, tools=[Files(work)]).run_sync("Use American spelling, and move paint.py into src/brush.")
    for message in result.messages:
        if isinstance(message, ToolMessage):
            print(f"{message.name}: {message.text}")
    assert (work / "src/brush/paint.py").read_text() == "def paint(color):\n    return color\n"
