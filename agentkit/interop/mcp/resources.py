"""The other things that a server offers: resources, which are read by their URI, and prompts, which a user chooses.

Their descriptions, names and contents come from the server and are as untrusted as those of its tools: amounts are
bounded, secrets redacted, and in what is listed control characters are escaped and invisible ones replaced.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agentkit.checks.spelling import refuse_unknown, takes, unknown
from agentkit.checks.unicode import escape_controls, visible
from agentkit.errors import ConfigError, show_value
from agentkit.formats.quarantined_text import DeclarationQuarantine
from agentkit.interop.mcp.amount import ITEMS
from agentkit.interop.mcp.contents import blocks_of, resource_result
from agentkit.interop.mcp.declarations import truncate
from agentkit.interop.mcp.session import CallFailed, all_pages
from agentkit.messages import ImagePart, MaterialPart, Message, UserMessage
from agentkit.tool.result import ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")

MAX_URI: Final = 2_000
"""Characters of a URI, or of a prompt's name; a longer one is left out."""

READ: Final = "read_resource"
_WORDS: Final = {"words": {"type": "string", "description": "only those that contain this"}}
_URI: Final = {"uri": {"type": "string"}}
RESOURCE_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "list_resources": ("List what can be read from {server}, by URI.", {"type": "object", "properties": _WORDS}),
    READ: ("Read something from {server} by its URI.", {"type": "object", "properties": _URI, "required": ["uri"]}),
}
"""The tools with which a model reads a server's resources: description and parameters by name."""


@dataclass(frozen=True, slots=True)
class MCPResource:
    """Something that a server lets its clients read.

    Args:
        uri: its address; of a template, with `{name}` in the places that the reader fills in.
        name: its title, or its name.
        description: for people and models; at most `max_description` characters.
        media_type: as the server declares it; empty if it does not.
        template: whether the URI is a template.
    """

    uri: str
    name: str
    description: str = ""
    media_type: str = ""
    template: bool = False

    def __str__(self) -> str:
        kind = " (fill in the {…} of the URI)" if self.template else f" ({self.media_type})" if self.media_type else ""
        return f"{self.uri}: {self.name}{kind}" + (f": {self.description}" if self.description else "")


@dataclass(frozen=True, slots=True)
class MCPPrompt:
    """A prompt that a server has written for its users.

    Args:
        name: its name on the server.
        description: for people; at most `max_description` characters.
        arguments: the descriptions of its arguments, by name.
        required: the names of the arguments that it cannot do without.
    """

    name: str
    description: str
    arguments: Mapping[str, str]
    required: tuple[str, ...]


class ServerContents(ABC):
    """The resources and prompts of one MCP server.

    Args:
        max_description: characters of a description.
    """

    def __init__(self, max_description: int) -> None:
        self._size = max_description
        self._quarantine = DeclarationQuarantine("xml")

    name: str

    @abstractmethod
    async def _ask(self, work: Callable[[Client], Awaitable[Any]]) -> Any:
        """Do something with the session, whatever loop this is; raises CallFailed or TimeoutError."""

    @abstractmethod
    def _unseen(self, text: str) -> str:
        """A text without the server's secrets."""

    async def resources(self) -> tuple[MCPResource, ...]:
        """The server's resources and then its templates, as it lists them now; at most 5,000 of each.

        Raises:
            ConfigError: the server cannot be used, or lists too many.
        """
        return await self._of_server("cannot list its resources", self._resources())

    async def read_resource(self, uri: str) -> ToolResult:
        """Read a resource.

        Args:
            uri: its URI, or a template's URI that is filled in.

        Returns:
            Text and images are its content, as a model would read them; other data is in `metadata["mcp"]["data"]`, in
            base64.

        Raises:
            ConfigError: the server cannot be used, has no such resource, or sends more than 2,000 items.
        """
        if not isinstance(uri, str):
            raise ConfigError(f"read_resource(…) expects a URI, found {show_value(uri)}")
        return await self._of_server(f"cannot read {uri!r:.200}", self._read(uri))

    async def prompts(self) -> tuple[MCPPrompt, ...]:
        """The server's prompts, as it lists them now.

        Raises:
            ConfigError: the server cannot be used, or lists more than 5,000.
        """
        return await self._of_server("cannot list its prompts", self._prompts())

    @takes(such="prompt('review', {'code': 'x'})")
    async def prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> list[Message]:
        """A prompt as messages, for `agent.run(await server.prompt("review", {"code": …}))`.

        All are the user's messages, even those that the server wrote as a model's reply. Markers of text formats
        in them are broken, as in a tool's result. Show them to your user first: the server has written them.

        Args:
            name: its name.
            arguments: its arguments, by name.

        Raises:
            ConfigError: the server cannot be used, lists no such prompt, or sends more than 2,000 messages; or an
                argument is lacking, unknown or not a string.
        """
        return await self._of_server(f"cannot get the prompt {name!r:.200}", self._messages(name, arguments or {}))

    async def _of_server(self, what: str, work: Awaitable[T]) -> T:
        try:
            return await work
        except (CallFailed, ConfigError, TimeoutError, ValueError) as e:
            said = "no answer in time" if isinstance(e, TimeoutError) else escape_controls(self._unseen(str(e)))
            raise ConfigError(f"MCP server {self.name!r}: {what}: {said}") from None

    # -------------------------------------------------------------- resources

    async def _resources(self) -> tuple[MCPResource, ...]:
        fixed = await self._ask(lambda client: all_pages(client.list_resources, "resources"))
        templates = await self._ask(lambda client: all_pages(client.list_resource_templates, "resource_templates"))
        found = [MCPResource(one.uri, *self._about(one), one.mime_type or "") for one in fixed]
        found += [MCPResource(one.uri_template, *self._about(one), one.mime_type or "", True) for one in templates]
        return tuple(one for one in found if self._is_exact(one.uri) and self._is_exact(one.media_type))

    async def _read(self, uri: str) -> ToolResult:
        read = await self._ask(lambda client: client.read_resource(uri))
        return resource_result(_bounded(read.contents, "items"), self._unseen)

    async def _for_model(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Answer a call of one of `RESOURCE_TOOLS`."""
        try:
            if tool == READ:
                return await self.read_resource(arguments["uri"])
            words = str(arguments.get("words") or "").casefold()
            lines = [" ".join(str(one).split()) for one in await self.resources()]
        except ConfigError as e:
            return ToolResult(error=str(e))
        return ToolResult("\n".join(line for line in lines if words in line.casefold()) or "there is nothing")

    # -------------------------------------------------------------- prompts

    async def _prompts(self) -> tuple[MCPPrompt, ...]:
        listed = await self._ask(lambda client: all_pages(client.list_prompts, "prompts"))
        return tuple(self._prompt(one) for one in listed if self._is_exact(one.name))

    def _prompt(self, one: Any) -> MCPPrompt:
        needs = [argument for argument in one.arguments or () if self._is_exact(argument.name)]
        described = {argument.name: self._safe(argument.description or "") for argument in needs}
        required = tuple(argument.name for argument in needs if argument.required)
        return MCPPrompt(one.name, self._about(one)[1], described, required)

    async def _messages(self, name: str, arguments: Mapping[str, str]) -> list[Message]:
        if not isinstance(arguments, Mapping):
            raise ValueError(f"its arguments are given by name, found {show_value(arguments)}")
        prompts = {one.name: one for one in await self._prompts()}
        if name not in prompts:
            raise ValueError(unknown("prompt", str(name), prompts))
        refuse_unknown("it", arguments, tuple(prompts[name].arguments))
        for one, value in arguments.items():
            if not isinstance(value, str):
                raise ValueError(f"{one!r} expects a string, found {show_value(value)}")
        if lacks := [repr(one) for one in prompts[name].required if one not in arguments]:
            raise ValueError(f"it is missing {' and '.join(lacks)}")
        got = await self._ask(lambda client: client.get_prompt(name, dict(arguments)))
        return [self._message(one) for one in _bounded(got.messages, "messages")]

    def _message(self, message: Any) -> Message:
        parts = blocks_of([message.content], self._unseen)  # of either role: no server speaks for the model
        return UserMessage([part if isinstance(part, ImagePart) else MaterialPart(part.text) for part in parts])

    # -------------------------------------------------------------- untrusted texts

    def _about(self, one: Any) -> tuple[str, str]:
        """The title and the description of something that the server lists."""
        return self._safe(one.title or one.name), self._safe(one.description or "")

    def _safe(self, text: str) -> str:
        return escape_controls(self._quarantine.text(truncate(self._unseen(text), self._size)))

    def _is_exact(self, word: str) -> bool:
        """Say if a word that must be sent back can be shown as it is, in one line, and is not a secret."""
        return len(word) <= MAX_URI and word.isprintable() and visible(self._unseen(word)) == word


def _bounded(items: Sequence[Any], what: str) -> Sequence[Any]:
    if len(items) > ITEMS:
        raise ValueError(f"its answer has {len(items):,} {what}; at most {ITEMS:,} are read")
    return items
