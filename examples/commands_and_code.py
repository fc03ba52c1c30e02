"""A model that uses a shell and Python on one folder, in a sandbox; run it with `python examples/commands_and_code.py`.

The model is a script, so no key is needed. Replace it by a name such as "openai:gpt-5" to use a real one. On a machine
without a working sandbox the tools refuse to start, and say what is missing.
"""

import tempfile

from agentkit import Agent
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit_tools.python import Python
from agentkit_tools.shell import Shell

SCRIPT = [
    "<execute-command>seq 1 10 > numbers.txt && wc -l < numbers.txt</execute-command>",
    "<python>numbers = [int(line) for line in open('numbers.txt')]\nprint('sum:', sum(numbers))\nmax(numbers)</python>",
    "The sum is 55, the largest is 10.",
]

with tempfile.TemporaryDirectory() as folder:
    tools = [Shell(folder), Python(folder)]
    result = Agent(ScriptedModel(SCRIPT, format="xml"), tools=tools).run_sync("Add up the numbers from 1 to 10.")
    for message in result.new_messages:
        if isinstance(message, ToolMessage):
            print(f"{message.name}:", *message.text.splitlines(), sep="\n    ")
    print(result.text)
