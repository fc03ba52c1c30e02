"""The fields that servers of open models require if calls are read as text, and how to detect a removed call.

Pure: tables with their sources. A server of unknown kind gets only fields that OpenAI knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agentkit.checks.bounds import YES_OR_NO, either, one_of, or_none
from agentkit.errors import ProviderError
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Finish, SourceEvent, Text, Thinking, Usage
from agentkit.models.files_taken import TEXTS, FilesTaken

if TYPE_CHECKING:
    from agentkit.grammar import Target


class GrammarField(NamedTuple):
    """How a server expects the grammar that a reply must fit.

    Args:
        name: the field of a request for chat completions.
        target: the kind of grammar in it.
        needs: what its operator can change if it is refused, or has no effect.
    """

    name: str
    target: Target
    needs: str


class Server(NamedTuple):
    """One kind of server.

    Args:
        text: fields of a request that make it leave calls in the text as the model wrote them.
        advice: what its operator can change if it removes calls from the text nevertheless.
        grammar: how it expects a grammar, or in words why it accepts none.
        converts: whether it converts schemas to grammars as llama.cpp does, and refuses what it cannot convert.
        files: the files that it takes.
        by_url: whether audio and video are parts of the type `audio_url` and `video_url`, not `input_audio`.
    """

    text: Mapping[str, Any]
    advice: str
    grammar: GrammarField | str
    converts: bool = False
    files: FilesTaken = FilesTaken(TEXTS)
    by_url: bool = False


_MEDIA: Final = FilesTaken((*TEXTS, "audio/*", "video/*"), ("audio/*", "video/*"))
_TAG: Final = partial(GrammarField, "response_format", "structural_tag")

SERVERS: Final[Mapping[str, Server]] = {
    # skip_special_tokens defaults to true, and removes <tool_call> and the like from the text if they are special
    # tokens: vLLM 0.33 `ChatCompletionRequest`, vLLM issue 25281. Nineteen of its parsers read requests without tools
    # as well, and drop the calls: `abstract_parser.py`.
    "vllm": Server(
        {"skip_special_tokens": False},
        "start vLLM without --tool-call-parser, or let the model call natively (omit `format`)",
        # vLLM 0.33 `generate/base/protocol.py`; the guided_* fields and the tag at the top of the body are gone since
        # 0.12, and ignored. `structured_outputs` accepts the same; its `grammar` has no special tokens, but openers of
        # calls may be special tokens. The backend guidance knows older tags only: vLLM issue 55152
        _TAG(
            "vLLM enforces structural tags only with its backend xgrammar: start it with "
            "--structured-outputs-config.backend xgrammar",
        ),
        # vLLM's example "OpenAI chat completion client for multimodal"
        files=_MEDIA,
        by_url=True,
    ),
    # the same field, SGLang 0.5.23 `openai/protocol.py`; without tools only its parser minimax-m3 reads calls
    "sglang": Server(
        {"skip_special_tokens": False},
        "start SGLang without --tool-call-parser, or let the model call natively (omit `format`)",
        # SGLang 0.5.23 `openai/protocol.py`; llguidance accepts only the older tags, outlines and none accept no tag
        _TAG(
            "SGLang enforces structural tags only with its backend xgrammar: start it without "
            "--grammar-backend, or with --grammar-backend xgrammar",
        ),
        # its `openai/protocol.py`, which has no `input_audio`
        files=_MEDIA,
        by_url=True,
    ),
    "llamacpp": Server(
        {"parse_tool_calls": False},
        "this llama-server reads calls although raw text was requested; let the model call natively (omit `format`)",
        # `tools/server/server-schema.cpp`, 2026. Eager on chat completions, whatever else is sent: `server-common.cpp`
        GrammarField(
            "grammar",
            "gbnf",
            "llama.cpp refuses a grammar that it cannot parse, and any together with `tools`; its log names the rule",
        ),
        converts=True,
        files=FilesTaken((*TEXTS, "audio/wav", "audio/mpeg")),  # its documentation, `multimodal.md`
    ),
    "ollama": Server(
        {},
        "Ollama reads calls with and without tools; let the model call natively (omit `format`)",
        "Ollama accepts schemas for a whole reply, but no grammar",  # Ollama issues 565 and 5899
        converts=True,  # it contains llama.cpp's converter
    ),
    "lmstudio": Server(
        {},
        "LM Studio reads calls by the model's template; let the model call natively",
        "LM Studio accepts schemas for a whole reply, but no grammar",
        converts=True,  # llama.cpp is its engine
    ),
}
"""By the name to pass as `model(server=…)`."""

NAMED: Final = or_none(one_of(SERVERS), "for OpenAI or any other server")
"""The values of `server`."""

Constrained = bool | Literal["no_thinking", "begun_thinking"]
"""If, and from where on, a reply is constrained by a grammar; see `ModelOptions`."""

_WORDS: Final = ("no_thinking", "begun_thinking")
CONSTRAINED: Final = either(
    YES_OR_NO,
    one_of(_WORDS),
    words=f"True, False or one of {', '.join(_WORDS)}; the server is named with server=",
)._replace(choices=_WORDS)
"""The values of `constrained`."""

UNKNOWN: Final = (
    "the server has most likely read a call itself and dropped it; switch its tool parser off, name the server with "
    "model(…, server=…), or let the model call natively (omit `format`)"
)

FEWEST: Final = 5  # tokens; the shortest call takes this many, and the end of an empty reply counts as one or two
MARK_TOKENS: Final = 12  # the mark of a result, at which a server was to stop, takes at most this many


class CutOut:
    """Watches a reply whose calls are to be read as text, for signs that the server removed one."""

    def __init__(self) -> None:
        self._said = self._thought = False
        self.spent = 0
        """The tokens of the reply, apart from its thinking."""

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
                self.spent = event.output_tokens - event.reasoning_tokens

    def error(self, ending: Finish, provider: str, server: str | None) -> ProviderError | None:
        """The failure to report instead of an empty reply, if the model must have written more than arrived."""
        empty = not self._said and not self._thought and ending.reason in ("stop", "unknown")
        if not empty or self.spent < FEWEST:
            return None
        if provider == "anthropic":  # it removes no call from a text, and may reply with redacted thinking alone
            return None
        advice = SERVERS[server].advice if server is not None else UNKNOWN
        said = f"the model wrote {self.spent} tokens, but the reply has no text: {advice}"
        return ProviderError(f"{provider}: {said}", kind="stream", provider=provider)
