"""What servers of open models want of a request whose calls are read as text, and how to tell that they cut one out.

Pure: tables with their sources. A server that nobody named is asked nothing that OpenAI does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agentkit.checks.bounds import YES_OR_NO, either, one_of, or_none
from agentkit.errors import ProviderError
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Finish, SourceEvent, Text, Thinking, Usage

if TYPE_CHECKING:
    from agentkit.grammar import Target


class GrammarField(NamedTuple):
    """How a server takes the grammar that a reply must fit.

    Args:
        name: the field of a request for chat completions.
        target: what it holds.
        needs: what its operator can change where it is refused, or has no effect.
    """

    name: str
    target: Target
    needs: str


class Server(NamedTuple):
    """One kind of server.

    Args:
        text: fields of a request that make it leave calls in the text as the model wrote them.
        advice: what its operator can change where it takes calls out of the text all the same.
        grammar: how it takes a grammar, or in words why it takes none.
    """

    text: Mapping[str, Any]
    advice: str
    grammar: GrammarField | str


SERVERS: Final[Mapping[str, Server]] = {
    # skip_special_tokens defaults to true, and takes <tool_call> and its like out of the text where these are special
    # tokens: vLLM 0.33 `ChatCompletionRequest`, vLLM issue 25281. Nineteen of its parsers read requests without tools
    # as well, and drop the calls: `abstract_parser.py`.
    "vllm": Server(
        {"skip_special_tokens": False},
        "start vLLM without --tool-call-parser, or let the model call natively (leave `format` out)",
        # vLLM 0.33 `generate/base/protocol.py`; the guided_* fields and the tag at the top of the body are gone since
        # 0.12, and ignored. `structured_outputs` takes the same; its `grammar` has no special tokens, which openers of
        # calls may be. The backend guidance knows older tags only: vLLM issue 55152
        GrammarField(
            "response_format",
            "structural_tag",
            "vLLM holds replies to structural tags with its backend xgrammar alone: start it with "
            "--structured-outputs-config.backend xgrammar",
        ),
    ),
    # the same field, SGLang 0.5.23 `openai/protocol.py`; without tools only its parser minimax-m3 reads calls
    "sglang": Server(
        {"skip_special_tokens": False},
        "start SGLang without --tool-call-parser, or let the model call natively (leave `format` out)",
        # SGLang 0.5.23 `openai/protocol.py`; llguidance takes the older tags only, outlines and none take no tag
        GrammarField(
            "response_format",
            "structural_tag",
            "SGLang holds replies to structural tags with its backend xgrammar alone: start it without "
            "--grammar-backend, or with --grammar-backend xgrammar",
        ),
    ),
    "llamacpp": Server(
        {"parse_tool_calls": False},
        "this llama-server reads calls although it was asked for raw text; let the model call natively (leave `format` "
        "out)",
        # `tools/server/server-schema.cpp`, 2026. Eager on chat completions, whatever else is sent: `server-common.cpp`
        GrammarField(
            "grammar",
            "gbnf",
            "llama.cpp refuses a grammar that it cannot parse, and any beside `tools`; its log names the rule",
        ),
    ),
    "ollama": Server(
        {},
        "Ollama reads calls with and without tools; let the model call natively (leave `format` out)",
        "Ollama takes schemas for a whole reply, and no grammar",  # Ollama issues 565 and 5899
    ),
    "lmstudio": Server(
        {},
        "LM Studio reads calls by the model's template; let the model call natively",
        "LM Studio takes schemas for a whole reply, and no grammar",
    ),
}
"""By the name to give as `model(server=…)`."""

NAMED: Final = or_none(one_of(SERVERS), "for a server that is none of them, or OpenAI")
"""What `server` may be."""

Constrained = bool | Literal["no_thinking", "begun_thinking"]
"""Whether, and from where on, a reply is held to a grammar; see `ModelOptions`."""

_WORDS: Final = ("no_thinking", "begun_thinking")
CONSTRAINED: Final = either(
    YES_OR_NO,
    one_of(_WORDS),
    words=f"True, False or one of {', '.join(_WORDS)}; the server is named with server=",
)._replace(choices=_WORDS)
"""What `constrained` may be."""

UNKNOWN: Final = (
    "the server has most likely read a call itself and dropped it; switch its tool parser off, name the server with "
    "model(…, server=…), or let the model call natively (leave `format` out)"
)

FEWEST: Final = 5  # tokens; the shortest call takes as many, and the end of an empty reply counts as one or two


class CutOut:
    """Watches a reply whose calls are to be read as text, for signs that the server cut one out."""

    def __init__(self) -> None:
        self._said = self._thought = False
        self._spent = 0

    def sees(self, event: SourceEvent) -> None:
        """One event of the reply."""
        match event:
            case Text(text):
                self._said = self._said or bool(text.strip())
            case Thinking():
                self._thought = True
            case CallStart() | ArgumentDelta() | CallEnd() | CallError():
                self._said = True
            case Usage():
                self._spent = event.output_tokens - event.reasoning_tokens

    def error(self, ending: Finish, provider: str, server: str | None) -> ProviderError | None:
        """The failure to report in place of an empty reply, if the model must have written more than came."""
        empty = not self._said and not self._thought and ending.reason in ("stop", "unknown")
        if not empty or self._spent < FEWEST:
            return None
        advice = SERVERS[server].advice if server is not None else UNKNOWN
        said = f"the model wrote {self._spent} tokens, yet the reply holds no text: {advice}"
        return ProviderError(f"{provider}: {said}", kind="stream", provider=provider)
