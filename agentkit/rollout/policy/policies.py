"""Policies: a server's completions, any agentkit model, or a script."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Final

from agentkit import formats
from agentkit.checks.missing_await import Closing
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import Finish, FinishReason, SourceEvent, Text, Thinking
from agentkit.formats.format import THINK, Format
from agentkit.models import error_bodies
from agentkit.models.base import Model, ModelRequest, close
from agentkit.models.clients import Clients
from agentkit.models.finishes import FINISHES, TAKEN_OUT, finish
from agentkit.models.model_strings import model as named_model
from agentkit.models.provider import CONNECT_TIMEOUT, PLACEHOLDER_KEY
from agentkit.models.provider_errors import RequestInfo, provider_error
from agentkit.models.text import TextCalling
from agentkit.models.vendors import OPENAI
from agentkit.models.wire import text_of
from agentkit.rollout.policy.generation import Generation, GenerationRequest

KEEP_STOP: Final[Mapping[str, Mapping[str, Any]]] = {
    "vllm": {"include_stop_str_in_output": True},
    "sglang": {"no_stop_trim": True},
}
"""By the name of a server: the fields with which it leaves the stop string in the text. Source: their protocols."""

_FINISHES: Final[Mapping[str, FinishReason]] = {
    **FINISHES,
    **dict.fromkeys(TAKEN_OUT, "cancelled"),  # the trainer's own engine took the request back: no fault of the policy
}


class ServerPolicy(Closing):
    """An engine with OpenAI-compatible completions (`/v1/completions`): vLLM, SGLang, llama.cpp.

    The conversation goes there as token ids. vLLM tells the token ids that it wrote (`return_token_ids`, since 0.10.2);
    from a server that does not, the text is taken, and the record says that the ids are not exact.

    Args:
        model: the name under which the server serves the model.
        base_url: its address, such as `http://127.0.0.1:8000/v1`.
        api_key: its key, if it wants one.
        timeout: seconds for one response.
        max_retries: how often the SDK repeats a request that failed before it was answered.
        logprobs: whether to ask for the log-probability of each token.
        asks: fields of every request besides OpenAI's. Pass `{}` for a server that refuses unknown ones.
        http_client: the SDK's HTTP client, if it is not to make one.
    """

    @takes(such="ServerPolicy('Qwen/Qwen3-8B', 'http://127.0.0.1:8000/v1')")
    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout: float = 600.0,
        max_retries: int = 2,
        logprobs: bool = True,
        asks: Mapping[str, Any] | None = None,
        http_client: Any = None,
    ) -> None:
        self.model, self.base_url = model, base_url
        self._key = api_key or PLACEHOLDER_KEY
        self._timeout, self._retries, self._logprobs = timeout, max_retries, logprobs
        self._asks = {"return_token_ids": True, "skip_special_tokens": False} if asks is None else dict(asks)
        self._http_client = http_client
        self._clients = Clients(owned=http_client is None)

    def __repr__(self) -> str:
        return f"ServerPolicy({self.model!r}, {self.base_url!r})"

    async def generate(self, request: GenerationRequest) -> Generation:
        """Write the next turn.

        Raises:
            ConfigError: the rollout has no tokenizer.
            ProviderError: the server refused, or did not answer.
        """
        if request.token_ids is None:
            raise ConfigError(f"{self!r} sends token ids: give the rollout a tokenizer, or use ModelPolicy(model(…))")
        client = await self._clients.get(self._made_client)
        fields = dict(request.sampling)
        keep = {**KEEP_STOP["vllm"], **KEEP_STOP["sglang"]} if request.stop and self._asks else {}
        extra = {**self._asks, **keep, **fields.pop("extra_body", {}), **fields}
        handled = sys.exception()  # if the caller asks while it handles one
        try:
            with error_bodies.errors_up_to(error_bodies.MAX_ERROR):
                answer = await client.completions.create(
                    model=self.model,
                    prompt=list(request.token_ids),
                    max_tokens=request.max_tokens,  # null is "as many as fit"; without the field 16 is the default
                    stop=list(request.stop) or None,
                    logprobs=1 if self._logprobs else None,
                    extra_headers={"X-Session-Id": request.trajectory_id},  # routers keep a session's prefix by it
                    extra_body=extra,
                )
        except OPENAI.errors() as error:
            secrets = [self._key] if self._key != PLACEHOLDER_KEY else []
            asked = RequestInfo(self.base_url, secrets, self._timeout, handled=handled)
            raise provider_error(error, asked, None, None) from error
        return self._read(answer.to_dict(), request.stop)

    def _read(self, answer: Mapping[str, Any], stop: Sequence[str]) -> Generation:
        choices = answer.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            count = len(choices) if isinstance(choices, list) else 0
            raise ProviderError(
                f"{self.base_url}: expected one completion, found {count}",
                kind="stream",
                provider=self.base_url,
            )
        choice = choices[0]
        told = choice.get("logprobs") or {}
        ids, probabilities = choice.get("token_ids"), told.get("token_logprobs")
        if ids is None:
            ids = _ids_in(told.get("tokens"))
        if ids is None or probabilities is None or None in probabilities:
            probabilities = None
        ending = finish(text_of(choice.get("finish_reason")), calls=False, reasons=_FINISHES)
        return Generation(choice.get("text"), ids, probabilities, ending.reason, _stopped_by(choice, stop))

    def _made_client(self) -> Any:
        import httpx2

        http_client = self._http_client or OPENAI.new_http_client()
        error_bodies.install_hooks(http_client)
        return OPENAI.new_client(
            api_key=self._key,
            base_url=self.base_url,
            timeout=httpx2.Timeout(self._timeout, connect=min(self._timeout, CONNECT_TIMEOUT)),
            max_retries=self._retries,
            http_client=http_client,
        )

    async def aclose(self) -> None:
        """Close the connections made in the running event loop; the policy can be used again afterwards."""
        await self._clients.aclose()


_TOLD_STOPS: Final = ("stop_reason", "matched_stop")
"""The fields in which vLLM and SGLang say at which string they stopped; None or a token's id if it was at a token."""


def _stopped_by(choice: Mapping[str, Any], stop: Sequence[str]) -> str | None:
    """The stop string at which a server stopped; empty if it says that there was none, None if it does not say."""
    told = [choice[name] for name in _TOLD_STOPS if name in choice]
    return next((by for by in told if by in stop), "") if stop and told else None


_SPELT: Final = "token_id:"  # vLLM with `return_tokens_as_token_ids`, which older versions know


def _ids_in(tokens: Any) -> list[int] | None:
    """Token ids that are spelt among the log-probabilities; None if the tokens are given as texts."""
    if not isinstance(tokens, list) or not all(isinstance(t, str) and t.startswith(_SPELT) for t in tokens):
        return None
    return [int(token.removeprefix(_SPELT)) for token in tokens] or None


class ModelPolicy(Closing):
    """Any agentkit model, of an API or of a server's chat completions. There are no token ids.

    In a text format the tools are taught in the system message, and results are quarantined user messages. With
    `format=None` the model calls natively, and its calls are answered so.

    Args:
        model: the model, such as `agentkit.model("openai:gpt-5")`, or a model string.
        format: the rollout's format, None for native calls. A model that has its own format keeps it.
    """

    def __init__(self, model: str | Model, format: str | Format | None = "hermes") -> None:
        model = named_model(model) if isinstance(model, str) else model
        self._model = model if model.format is not None or format is None else TextCalling(model, format)
        own = self._model.format
        self.format = None if own is None else formats.get(own)
        """How the model's calls look; None for native ones."""
        self._tags = self.format.thinking[0] if self.format is not None and self.format.thinking else THINK[0]

    def __repr__(self) -> str:
        return f"ModelPolicy({self._model!r})"

    async def generate(self, request: GenerationRequest) -> Generation:
        """Write the next turn. In a text format, thinking that the provider reports separately is text in tags.

        Raises:
            ProviderError: the model refused, or did not answer.
        """
        server = str(getattr(getattr(self._model, "inner", self._model), "server", None))
        keep = KEEP_STOP.get(server, {}) if request.stop else {}
        sampling = {**keep, **request.sampling}
        asked = ModelRequest(
            messages=request.messages,
            tools=request.tools,
            max_tokens=request.max_tokens,
            temperature=sampling.pop("temperature", None),
            stop=tuple(request.stop),
            extra=sampling,
        )
        events = [event async for event in self._model.stream(asked)]
        ending = next((event for event in reversed(events) if isinstance(event, Finish)), Finish("unknown"))
        if self.format is None:
            return Generation(finish=ending.reason, events=tuple(events))
        by = "" if ending.raw == "end_turn" else None  # Anthropic tells the two apart, OpenAI does not
        return Generation(_text_of(events, self._tags), finish=ending.reason, stopped_by=by)

    async def aclose(self) -> None:
        """Close the connections of the model, if it has any."""
        await close(self._model)


def _text_of(events: Iterable[SourceEvent], tags: tuple[str, str]) -> str:
    """A response as text, with its thinking between tags."""
    text, inside = "", False
    for event in events:
        match event:
            case Thinking(more) if more:
                text += more if inside else f"{tags[0]}{more}"
                inside = True
            case Text(more) if more:
                text += f"{tags[1]}\n\n{more}" if inside else more
                inside = False
    return text + (tags[1] if inside else "")


ScriptedReply = str | Generation | Exception
"""One turn of a script: text, all that an engine would tell, or an error to raise."""

PolicyScript = Sequence[ScriptedReply] | Callable[[GenerationRequest], ScriptedReply | Awaitable[ScriptedReply]]


class ScriptedPolicy:
    """A policy that plays a script, for tests: every trajectory plays it from its beginning.

    Args:
        script: the turns; or a function that makes a turn for each request.
        tokenizer: answer with token ids as well, those of the text, each with the log-probability -0.5.
        end: a text written after each text, such as `<|im_end|>`; it needs a tokenizer.

    Raises:
        ConfigError: the script is neither.
    """

    def __init__(self, script: PolicyScript, *, tokenizer: Any = None, end: str = "") -> None:
        if not callable(script) and (isinstance(script, str) or not isinstance(script, Iterable)):
            raise ConfigError(f"a script is a list of turns, or a function of the request; found {script!r:.60}")
        self._script = script if callable(script) else tuple(script)
        self._tokenizer, self._end = tokenizer, end

    async def generate(self, request: GenerationRequest) -> Generation:
        """Play the next turn.

        Raises:
            ConfigError: the script is used up.
        """
        said = self._script(request) if callable(self._script) else self._turn(self._script, request)
        if isawaitable(said):
            said = await said
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Generation):
            return said
        if self._tokenizer is None:
            return Generation(text=said)
        ids = self._tokenizer.encode(said + self._end, add_special_tokens=False)
        return Generation(text=said, token_ids=ids, logprobs=[-0.5] * len(ids))

    def _turn(self, script: Sequence[ScriptedReply], request: GenerationRequest) -> ScriptedReply:
        begun = request.turn
        if begun >= len(script):
            raise ConfigError(f"the script has {len(script)} turns, but {request.trajectory_id} asks for another")
        return script[begun]
