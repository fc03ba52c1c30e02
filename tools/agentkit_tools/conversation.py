"""Talking with the person: a question that ends the run, and the word that the work is done."""

from __future__ import annotations

from agentkit import Tool, ToolResult, openapi_schema, xml_schema


class Conversation(Tool):
    """Lets the model end its run: with a question to the person, or because the work is done.

    Both methods end the run; later calls of the same response are not executed. What the person should see is in the
    call's arguments, and in `metadata` of the result that `ToolCompleted` carries: `text`, and `attachments`, a list of
    names. Nothing is opened here: an application that shows attachments reads them through the tool that has them, such
    as `Files`, so that a name cannot lead out of its folder.
    """

    @openapi_schema(terminates=True)
    @xml_schema(
        tag_name="ask",
        mappings=[
            {"param_name": "text", "node_type": "content", "path": "."},
            {"param_name": "attachments", "node_type": "attribute", "path": ".", "required": False},
        ],
        example='<ask attachments="report.md,chart.png">Shall I publish this report?</ask>',
    )
    def ask(self, text: str, attachments: list[str] | None = None) -> ToolResult:
        """Ask the user a question and wait for the answer. Use it if you cannot continue without it.

        Args:
            text: the question, with what the user needs to know to answer it
            attachments: files to show with it, as paths relative to the working folder
        """
        if not text.strip():
            return ToolResult(error="the question is empty; write what the user should answer")
        return _result_with("asked; the user's answer comes next", text, attachments)

    @openapi_schema(terminates=True)
    @xml_schema(
        tag_name="complete",
        mappings=[
            {"param_name": "text", "node_type": "content", "path": ".", "required": False},
            {"param_name": "attachments", "node_type": "attribute", "path": ".", "required": False},
        ],
        example="<complete></complete>",
    )
    def complete(self, text: str = "", attachments: list[str] | None = None) -> ToolResult:
        """Say that all work is done. Use it once, as the last call.

        Args:
            text: what was done, in a few sentences; empty if the user already knows
            attachments: files to hand over, as paths relative to the working folder
        """
        return _result_with("completed", text, attachments)


def _result_with(output: str, text: str, attachments: list[str] | None) -> ToolResult:
    return ToolResult(output, metadata={"text": text, "attachments": [name for name in attachments or () if name]})
