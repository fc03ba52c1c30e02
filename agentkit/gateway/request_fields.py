"""Fields of a client's request, read leniently, and the words in which one is refused. Pure; the same for all wires."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from agentkit.errors import show_value
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_schemas import client_schema
from agentkit.messages import ImagePart, TextPart, UserPart
from agentkit.models.openai import function_of
from agentkit.models.valid_history import fit_name
from agentkit.toolspec import OutputSchema, ToolSpec

Fields = Mapping[str, Any]

PART_URL: Final = "agentkit:part/"
"""The beginning of the URL of an `ImagePart` that stands for a content part that only the client's wire has."""

_LOG: Final = logging.getLogger("agentkit.gateway")

ANY_OBJECT: Final[Fields] = {"type": "object", "properties": {}}


def invalid(param: str, message: str) -> RequestRefused:
    """Return the refusal of a field that is not what its wire says."""
    return RequestRefused(400, f"{param}: {message}", "invalid_request", param=param)


def unsupported_field(param: str, what: str, instead: str = "omit it") -> RequestRefused:
    """Return the refusal of a field that a translated reply cannot honour.

    Args:
        param: the field.
        what: what the field asks for.
        instead: what to do.
    """
    message = (
        f"{param}: {what} goes through unchanged only where client and upstream speak the same wire, and this model's "
        f"replies are translated; {instead}"
    )
    return RequestRefused(400, message, "unsupported", param=param)


class UnsupportedField(NamedTuple):
    """A field that a translated reply cannot honour.

    Attributes:
        what: what it asks for.
        fine: its values that ask for nothing, besides null and empty ones.
        instead: what to do.
    """

    what: str
    fine: tuple[Any, ...] = ()
    instead: str = "omit it"


def refuse_unsupported(body: Fields, table: Mapping[str, UnsupportedField]) -> None:
    """Refuse the fields of the table, unless their values ask for nothing.

    Raises:
        RequestRefused: a field asks for something.
    """
    for name, field in table.items():
        value = body.get(name)
        if value and not any(value == fine and type(value) is type(fine) for fine in field.fine):
            raise unsupported_field(name, field.what, field.instead)


# ---------------------------------------------------------------- single values


def text_at(value: Any, at: str) -> str:
    """Return a string; empty for null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(at, f"expected a string, found {show_value(value)}")
    return value


def mapping_at(value: Any, at: str) -> Fields:
    """Return an object; empty for null."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid(at, f"expected an object, found {show_value(value)}")
    return value


def objects_at(value: Any, at: str) -> list[Fields]:
    """Return the objects of a list; of none for null. A single object counts as a list of one."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, list):
        raise invalid(at, f"expected a list, found {show_value(value)}")
    return [mapping_at(item, f"{at}[{n}]") for n, item in enumerate(value)]


def count(body: Fields, *names: str) -> int | None:
    """Return the first of these fields that is given, a positive integer; None if none is."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise invalid(name, f"expected a positive integer, found {show_value(value)}")
        return value
    return None


def number(body: Fields, name: str) -> float | None:
    """Return a number; None if it is not given."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(name, f"expected a number, found {show_value(value)}")
    return value


def flag(body: Fields, name: str) -> bool | None:
    """Return true or false; None if it is not given."""
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise invalid(name, f"expected true or false, found {show_value(value)}")
    return value


def stops(body: Fields, name: str) -> tuple[str, ...]:
    """Return the strings at which the reply ends: one, or a list."""
    value = body.get(name)
    found = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else ()
    if (value is not None and not isinstance(value, str | list)) or not all(isinstance(one, str) for one in found):
        raise invalid(name, f"expected a string or a list of strings, found {show_value(value)}")
    return tuple(one for one in found if one)


# ---------------------------------------------------------------- content


class ForeignParts:
    """The content parts of one request that only its wire has, by the URL of what stands for each."""

    def __init__(self) -> None:
        self.by_url: dict[str, Fields] = {}

    def keep(self, part: Fields) -> ImagePart:
        """Return what stands for a part."""
        url = f"{PART_URL}{len(self.by_url)}"
        self.by_url[url] = part
        return ImagePart(url=url)


Part = TextPart | ImagePart
P = TypeVar("P", bound=UserPart)


def content_at(content: Any, at: str, read: Callable[[Fields, str], P]) -> list[P | TextPart]:
    """Return content that is a string, a part, or a list of them; null and empty strings have no parts."""
    found: list[P | TextPart] = []
    for n, part in enumerate(content if isinstance(content, list) else [content]):
        if isinstance(part, Mapping):
            found.append(read(part, f"{at}[{n}]"))
        elif isinstance(part, str):
            found.append(TextPart(part))
        elif part is not None:
            raise invalid(at, f"expected a string or a list of content parts, found {show_value(part)}")
    return [part for part in found if not (isinstance(part, TextPart) and not part.text)]


def image_at(url: Any, at: str, part: Fields, foreign: ForeignParts) -> ImagePart:
    """Return the image at a URL, which may be a data URL; a file of another kind in a data URL is a foreign part."""
    if isinstance(url, str) and url.startswith("data:") and not url.startswith("data:image/"):
        return foreign.keep(part)
    try:
        return ImagePart(url=url)
    except ValueError:
        expected = "expected a URL, or data:image/png;base64,… with the image"
        raise invalid(at, f"{expected}, found {show_value(url)}") from None


def only_text(parts: Iterable[Part], at: str) -> str:
    """Return content that may be only text."""
    texts = []
    for part in parts:
        if not isinstance(part, TextPart):
            raise invalid(at, "only text is allowed here")
        texts.append(part.text)
    return "\n\n".join(texts)


# ---------------------------------------------------------------- tools


class Tools(NamedTuple):
    """The offered tools, and how they are to be called; see `ModelRequest`."""

    offered: tuple[ToolSpec, ...] = ()
    choice: str = "auto"
    parallel: bool | None = None


MAX_TOOLS: Final = 1_024
"""Tools of one request whose calls are read: eight times OpenAI's limit. Each takes 0.2 ms of the event loop."""

MAX_NAME: Final = 256
"""Characters of a tool's name: twice Anthropic's limit, which is the highest known."""


def tool_at(fields: Fields, at: str) -> ToolSpec:
    """Return a tool.

    Args:
        fields: its name, its description, and its schema as OpenAI's wires or Anthropic's have it.
        at: where it is in the request.
    """
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(f"{at}.name", f"expected the tool's name, found {show_value(name)}")
    if len(name) > MAX_NAME:
        raise invalid(f"{at}.name", f"expected at most {MAX_NAME} characters, found {len(name):,}")
    schema = "input_schema" if "input_schema" in fields else "parameters"
    given = fields.get(schema)
    description = text_at(fields.get("description"), f"{at}.description")
    text = "{}" if given is None else json.dumps(given)
    make = _tool if len(text) + len(description) <= _MAX_KEPT else _tool.__wrapped__
    return make(name, description, text, f"{at}.{schema}")


_PROVIDERS_TOOLS: Final = (
    "web_search", "web_fetch", "file_search", "code_interpreter", "code_execution", "image_generation", "tool_search",
)  # fmt: skip
"""The types of tools that a provider runs itself begin like this."""


def is_left_out(kind: str) -> bool:
    """Return whether a tool of this type is left out, because its provider would run it; the log says so once.

    Clients such as Codex always offer some. A tool that the client runs is never left out.
    """
    if (known := next(filter(kind.startswith, _PROVIDERS_TOOLS), None)) is not None:
        _log_once(known)  # not what the client wrote, which may be anything
    return known is not None


@lru_cache
def _log_once(kind: str) -> None:
    _LOG.warning("a client offers the tool %s, which only its provider can run: it is left out", kind)


_MAX_KEPT: Final = 32 * 1024  # characters of a tool that is kept: 256 of them take some 30 MiB


@lru_cache(maxsize=256)
def _tool(name: str, description: str, parameters: str, at: str) -> ToolSpec:
    """Return the same tool for the same text: what the formats compute from tools is kept by their identity."""
    return ToolSpec(name, description, client_schema(json.loads(parameters), at) or ANY_OBJECT)


def client_tools(body: Fields) -> Tools:
    """Return the tools of a request with a choice that fits them, in any wire.

    Those that only a provider can run are left out; those of a kind that only the client knows are refused.
    """
    offered = []
    for n, tool in enumerate(objects_at(body.get("tools"), "tools")):
        kind = tool.get("type") or "function"
        if is_left_out(str(kind)):
            continue
        if kind != "function" and not (kind == "custom" and "input_schema" in tool):  # OpenAI's `custom` takes any text
            raise unsupported_field(f"tools[{n}].type", f"a tool of the type {kind!r}", "offer a function instead")
        function = mapping_at(tool.get("function"), f"tools[{n}].function") or tool
        offered.append(tool_at(function, f"tools[{n}]"))
    for n, function in enumerate(objects_at(body.get("functions"), "functions")):
        offered.append(tool_at(function, f"functions[{n}]"))
    if len(offered) > MAX_TOOLS:
        raise invalid("tools", f"expected at most {MAX_TOOLS:,} tools, found {len(offered):,}")
    given = body.get("tool_choice") or body.get("function_call") or "auto"
    fields = {} if isinstance(given, str) else mapping_at(given, "tool_choice")
    choice, allowed = (_ANY.get(given, given), None) if isinstance(given, str) else _choice_of(fields)
    tools = tuple(tool for tool in offered if allowed is None or tool.name in allowed)
    known = ", ".join(tool.name for tool in offered) or "none"
    if choice not in ("auto", "none") and not tools:
        raise invalid("tool_choice", f"{choice!r} needs a tool that may be called; offered: {known}")
    if choice not in ("auto", "none", "required") and choice not in {tool.name for tool in tools}:
        raise invalid("tool_choice", f"no offered tool is called {choice!r}; offered: {known}")
    disabled = flag(fields, "disable_parallel_tool_use")
    parallel = flag(body, "parallel_tool_calls") if disabled is None else not disabled
    return Tools(tools, choice if tools else "auto", parallel if tools else None)


_ANY: Final[Mapping[str, str]] = {"any": "required"}  # Anthropic's word


def _choice_of(choice: Fields) -> tuple[str, Collection[Any] | None]:
    """Return how tools are to be called, or the name of one, and the names of the allowed ones; None for all."""
    match choice.get("type") or "function":
        case "auto" | "none" | "required" | "any" as kind:
            return _ANY.get(kind, kind), None
        case "allowed_tools":
            allowed = mapping_at(choice.get("allowed_tools"), "tool_choice.allowed_tools") or choice
            names = [function_of(tool).get("name") for tool in objects_at(allowed.get("tools"), "tool_choice.tools")]
            return text_at(allowed.get("mode"), "tool_choice.mode") or "auto", names
        case "function" | "tool":
            name = function_of(choice).get("name")
            if not isinstance(name, str):
                raise invalid("tool_choice.name", f"expected the tool's name, found {show_value(name)}")
            return name, None
        case kind:
            what = f"the choice of a tool of the type {kind!r}"
            raise unsupported_field("tool_choice.type", what, "choose a function")


def output_of(given: Fields, at: str) -> tuple[OutputSchema | None, bool]:
    """Return the schema that a format of replies asks for, None for any text, and whether its type is known."""
    match given.get("type"):
        case None | "text":
            return None, True
        case "json_object":
            return OutputSchema("reply", {"type": "object"}), True
        case "json_schema":
            inner = mapping_at(given.get("json_schema"), f"{at}.json_schema")  # in chat completions
            where = f"{at}.json_schema.schema" if inner else f"{at}.schema"
            name = (inner or given).get("name")
            fitted = fit_name(name) if isinstance(name, str) and name else "reply"
            return OutputSchema(fitted, client_schema((inner or given).get("schema"), where)), True
    return None, False
