"""`agentkit parse`, `formats` and `tools`: what agentkit reads, supports, and shows to a model. Runs nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentkit.cli.flag_words import TOOLS
from agentkit.cli.help_text import examples
from agentkit.cli.keyboard import whole_input
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import as_json, cells, columns, hanging, plain, table
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, CallError, Text, Thinking

if TYPE_CHECKING:
    from agentkit.tool.registry import ToolRegistry
    from agentkit.toolspec import ToolSpec


def add(commands: Any) -> None:
    """Declare the three commands and their options."""
    parse = commands.add_parser(
        "parse",
        help="read calls from text; print them as JSON",
        description="Read a model's text from standard input and print its calls as JSON, with any "
        "errors. Exit status 1 if a call could not be read or does not match its tool.",
        epilog=examples(
            "agentkit parse -t agentkit_tools.files:Files < reply.txt",
            "agentkit parse -f hermes -f invoke < reply.txt",
        ),
    )
    parse.add_argument(
        "-f", "--format", action="append", metavar="NAME", help="look only for this format; may be repeated"
    )
    parse.add_argument(
        "-t", "--tools", **TOOLS, default=[], help="the available tools, for their tags and parameter types"
    )
    parse.add_argument("--in-code", action="store_true", help="read calls inside code fences and code spans, too")
    parse.set_defaults(run=run_parse)

    formats = commands.add_parser(
        "formats",
        help="list the text formats; with a name, show the instructions that a model gets",
        epilog=examples("agentkit formats", "agentkit formats hermes -t agentkit_tools.files:Files"),
    )
    formats.add_argument("name", nargs="?", help="show the prompt section that teaches this format")
    formats.add_argument("-t", "--tools", **TOOLS, default=[], help="tools to teach; default: a sample tool")
    formats.set_defaults(run=run_formats)

    tools = commands.add_parser(
        "tools",
        help="list tools with their parameters, or their schemas as JSON",
        epilog=examples(
            "agentkit tools agentkit_tools.files:Files",
            "agentkit tools agentkit_tools.files:Files --json anthropic",
        ),
    )
    tools.add_argument("tools", **TOOLS, help="such as agentkit_tools.files:Files")
    tools.add_argument(
        "--json", metavar="FLAVOUR", help="print the schemas: chat, responses, strict, anthropic, gemini or mcp"
    )
    tools.set_defaults(run=run_tools)


# ---------------------------------------------------------------- parse


def run_parse(arguments: argparse.Namespace) -> int:
    """Print the calls in a text."""
    from agentkit import formats
    from agentkit.tool.registry import ToolRegistry

    chosen = [formats.get(name) for name in arguments.format or formats.names()]
    registry = ToolRegistry(*arguments.tools)
    if sys.stdin.isatty():
        print("(type or paste the text, then press Ctrl-D)", file=sys.stderr)
    text = whole_input()
    events = formats.parse(text, chosen, registry.specs(), in_code="execute" if arguments.in_code else "ignore")
    found = {
        "calls": [read(event, registry) for event in events if isinstance(event, (CallEnd, CallError))],
        "text": "".join(event.text for event in events if isinstance(event, Text)),
        "thinking": "".join(event.text for event in events if isinstance(event, Thinking)),
    }
    print(as_json(found, indent=2))
    if not arguments.tools and (not found["calls"] or any(f.body == "element per tool" for f in chosen)):
        # The bodies do not show which formats find nothing without tools, so finding no call at all is reason enough.
        print("(without --tools no tool tags are known: xml finds nothing, and bare calls are text)", file=sys.stderr)
    return int(any("error" in call for call in found["calls"]))


def read(event: CallEnd | CallError, registry: ToolRegistry) -> dict[str, Any]:
    """A call as JSON, with the error that the model would be sent."""
    call = event.call
    entry: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments), "format": call.format}
    entry["raw"] = call.raw
    match event:
        case CallError(code=code, message=message, position=position):
            return {**entry, "error": {"code": code, "message": message, "position": position}}
        case CallEnd(repairs=repairs):
            if repairs:
                entry["repairs"] = list(repairs)
            problem = find_problem(event, registry)
            return {**entry, "error": problem} if problem else entry


def find_problem(event: CallEnd, registry: ToolRegistry) -> dict[str, str] | None:
    """Find the error in a readable call; unknown tools are reported only if tools were passed."""
    from agentkit import formats
    from agentkit.schemas.words import InvalidArguments

    if not registry.specs():
        return None
    tool = registry.get_tool(event.call.name)
    if tool is None:
        return {"code": "unknown_tool", "message": f"the tools are {', '.join(s.name for s in registry.specs())}"}
    try:
        tool.validate(event.call.arguments, lenient=formats.get(event.call.format or "").textual)
    except InvalidArguments as e:
        return {"code": "invalid_arguments", "message": str(e)}
    return None


# ---------------------------------------------------------------- formats


def run_formats(arguments: argparse.Namespace) -> int:
    """List the formats, or show how a model is taught one."""
    from agentkit import formats
    from agentkit.tool.registry import ToolRegistry

    if arguments.name is None:
        rows = [
            (f.name, ", ".join(f.aliases) or "-", f.body, ", ".join(f.families))
            for f in map(formats.get, formats.names())
        ]
        head = ("format", "also called", "body", "written by")
        print("\n".join(table(head, rows, columns(), drop=("body", "also called"))))
        return 0
    specs = ToolRegistry(*arguments.tools).specs() or (sample(),)
    print(plain(formats.render_prompt(arguments.name, specs)))
    return 0


def sample() -> ToolSpec:
    """A tool to show a format with, if none is passed."""
    from agentkit.toolspec import Element, Node, ToolSpec

    number = {"type": "integer"}
    nodes = tuple(Node(name, "attribute", (name,)) for name in ("a", "b"))
    parameters = {"type": "object", "properties": {"a": number, "b": number}, "required": ["a", "b"]}
    return ToolSpec("add", "Add two numbers.", parameters, Element("add", nodes))


# ---------------------------------------------------------------- tools


def run_tools(arguments: argparse.Namespace) -> int:
    """List tools in readable form, or print their schemas."""
    from agentkit.tool.registry import ToolRegistry

    registry = ToolRegistry(*arguments.tools)
    if arguments.json is not None:
        print(as_json(registry.get_openapi_schemas(arguments.json), indent=2))
        return 0
    if not registry.specs():
        raise ConfigError(f"{', '.join(arguments.tools)}: no tools found there")
    screen = Screen(sys.stdout)
    for tool in dict.fromkeys([*registry.tools.values(), *registry.xml_tools.values()]):
        tag = f"  <{tool.tag}>" if tool.tag else ""
        head, where = f"{screen.style(plain(tool.name), 'bold')}{plain(tag)}", plain(tool.where)
        fits = cells(f"{plain(tool.name)}{plain(tag)}  {where}") <= (columns() or 1_000)
        screen.line(f"{head}{'  ' if fits else chr(10) + '    '}{screen.style(where, 'dim')}")
        for line in describe_tool(tool.spec):
            text = plain(line).lstrip(" ")
            for piece in hanging(text, columns(), " " * (4 + len(line) - len(line.lstrip(" ")))):
                screen.line(piece)
    return 0


def describe_tool(spec: ToolSpec) -> Iterator[str]:
    """Return a tool as lines: its description, then each parameter with its type, place in XML, and description."""
    from agentkit.schemas.words import describe

    yield from spec.description.splitlines()
    places = {n.parameter: n.kind for n in spec.element.nodes} if spec.element else {}
    for name, schema in spec.parameters.get("properties", {}).items():
        schema = schema if isinstance(schema, Mapping) else {}
        default = f"default {json.dumps(schema['default'], ensure_ascii=False)}" if "default" in schema else "optional"
        needed = "required" if name in spec.parameters.get("required", ()) else default
        about = [describe(schema, spec.parameters), needed, *([f"XML {places[name]}"] if name in places else [])]
        yield f"  {name} ({', '.join(about)}): {schema.get('description', '')}".rstrip(": ")
