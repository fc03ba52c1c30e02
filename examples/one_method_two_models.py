"""One method, called by a model that makes native JSON calls and by a model that writes XML tags.

Runs offline: `ScriptedModel` stands in for both. For real use, replace the first with `"openai:gpt-5"`, and
`agentkit.model("openai:gpt-5", format="xml")` in place of the second; nothing else changes.
"""

from agentkit import Agent, ToolCall, openapi_schema, xml_schema
from agentkit.testing import ScriptedModel


class Notes:
    """Notes that live as long as this object."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}

    @openapi_schema
    @xml_schema(name="save-note", attributes=["title"], content="text")
    def save_note(self, title: str, text: str) -> str:
        """Save a note under its title.

        Args:
            title: a few words
            text: the note itself, in any characters
        """
        self.notes[title] = text
        return f"saved; {len(self.notes)} notes now"


notes = Notes()
by_json = ScriptedModel([ToolCall("", "save_note", {"title": "milk", "text": "2 l & < 1 €"}), "Noted."])
by_xml = ScriptedModel(['Sure. <save-note title="bread">1 loaf & < 3 €</save-note>', "Noted."], format="xml")

for model in (by_json, by_xml):
    result = Agent(model, [notes]).run_sync("Please remember what I need.")
    for message in result.messages:
        print(f"{type(message).__name__:17} {message}")
    print()

print(notes.notes)
assert notes.notes == {"milk": "2 l & < 1 €", "bread": "1 loaf & < 3 €"}
