"""The readers of a conversation's responses, as its configuration says: for a run's processor, and for the gateway.

Only puts the parts together. Runs nothing, and knows no tool that could run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from agentkit import formats
from agentkit.events import ProviderBlock
from agentkit.messages import Message, ToolCall
from agentkit.processor.config import ProcessorConfig
from agentkit.processor.continuation import WrittenText
from agentkit.processor.maybe_output import IsOutput
from agentkit.processor.recovery import NewReader, Quoted, Recovery
from agentkit.processor.response import ResponseReader
from agentkit.processor.response_record import CallIds, ResponseRecord
from agentkit.processor.textcalls import TextCalls, refusal_of
from agentkit.processor.untrusted_input import UntrustedInput
from agentkit.toolspec import InCode, ToolSpec

if TYPE_CHECKING:
    from agentkit.formats.format import Format


class ReplyReaders:
    """Creates one reader for each response of a conversation.

    Args:
        config: in which formats calls count, and what is read of them; may change between two responses.
        ids: of the conversation's calls.
        untrusted: see `ResponseProcessor`.
        taught: see `ResponseProcessor`.
        output: see `ResponseProcessor`.
    """

    def __init__(
        self,
        config: ProcessorConfig,
        ids: CallIds,
        *,
        untrusted: Callable[[], Iterable[Message]] | None = None,
        taught: bool = False,
        output: IsOutput | None = None,
    ) -> None:
        self.config = config
        self._ids = ids
        self._output = output
        self._taught = taught
        self._untrusted = None if untrusted is None else UntrustedInput(untrusted)
        self._asked = set[str]() if self._untrusted is None else self._untrusted.copied

    def new(
        self, tools: Sequence[ToolSpec], *, continues: bool = False, already_run: Iterable[ToolCall] = ()
    ) -> ResponseReader:
        """Create the reader of the next response.

        Args:
            tools: the tools that the model could call.
            continues: whether a further response may continue this one after its token limit.
            already_run: calls that are refused if this response repeats them.
        """
        config, ran = self.config, tuple(already_run)
        refusal = refusal_of(ran) if ran else None
        record = ResponseRecord(self._ids, config.max_calls)
        blocks: list[ProviderBlock] = []
        if not config.text_formats:
            if not (tools and config.recovers):
                return ResponseReader(record, refusal=refusal)
            text = TextCalls(record, None, already_run=ran, recovery=self._recovery(tools, blocks))
        else:
            from agentkit.formats.reserved_tags import refuse_unread  # only a response with calls in text loads formats

            refuse_unread(config.text_formats, tools)
            text = TextCalls(
                record,
                self._new_parser(config.text_formats, tools, config.in_code),
                written=WrittenText(config.text_formats[0].name) if continues else None,
                quoted=None if self._taught else self._quoted(tools, blocks),
                already_run=ran,
                output=self._output,
                recovery=self._recovery(tools, blocks) if self._taught and config.recover and tools else None,
            )
            tools = tools if self._taught else ()
        return ResponseReader(
            record, text, blocks=blocks, offered=tools, asked=self._asked, output=self._output, refusal=refusal
        )

    def _recovery(self, tools: Sequence[ToolSpec], blocks: Sequence[ProviderBlock]) -> Recovery:
        """Return what finds calls in any format in one response's text."""
        return Recovery(self._new_parser(None, tools, "reply"), tools, self._quoted(tools, blocks), self._output)

    def _new_parser(self, several: Sequence[Format] | None, tools: Sequence[ToolSpec], in_code: InCode) -> NewReader:
        """Return the factory of one response's parsers, whose text may be interrupted; None reads any format."""

        def made(first: bool, after: formats.Parser | None) -> formats.Parser:
            return formats.Parser(
                formats.recoverable(bare=self._output is None) if several is None else several,
                tools,
                in_code=in_code,
                thinking=first and self.config.starts_thinking,
                after=after,
            )

        return made

    def _quoted(self, tools: Sequence[ToolSpec], blocks: Sequence[ProviderBlock]) -> Quoted | None:
        """Return the search for a call's tool in what the model has read; `blocks` are those of the response so far."""
        untrusted, offered = self._untrusted, {tool.name: tool for tool in tools}
        return None if untrusted is None else lambda call: untrusted.find_quote(call, offered, blocks)
