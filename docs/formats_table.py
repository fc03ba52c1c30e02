"""The catalogue of formats, the list of what can be a response_template, and the table of repairs, each on its page.

python docs/formats_table.py            print the catalogue
python docs/formats_table.py --exports  print the list
python docs/formats_table.py --repairs  print the table of repairs
python docs/formats_table.py --write    put each into its page
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from html import escape
from pathlib import Path

from agentkit.errors import FormatError
from agentkit.formats import CATALOG, REPAIRS, Format, ToolSpec, render_calls
from agentkit.formats.format import NestedTags, Pairs, TagParameters, TextArgument, ToolElement
from agentkit.grammar.targets import grammar_targets
from agentkit.interop.response_template import to_response_template
from agentkit.messages import ToolCall

DOCS = Path(__file__).parent
sys.path.append(str(DOCS.parent / "tests" / "support"))
from markup import share_refused  # noqa: E402  # the sample is that of the tests

MARKS = {
    "table": ("<!-- table: python docs/formats_table.py --write -->\n", "<!-- end of table -->\n"),
    "exports": ("<!-- exports: python docs/formats_table.py --write -->\n", "<!-- end of exports -->\n"),
    "repairs": ("<!-- repairs: python docs/formats_table.py --write -->\n", "<!-- end of repairs -->\n"),
}

PAGES = {"table": "reference/catalogue.md", "exports": "own_formats.md", "repairs": "parsing.md"}

WEATHER = ToolSpec(
    "get_weather",
    "The weather in a city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
)
CALL = ToolCall("", "get_weather", {"city": "Paris", "days": 3})
RAW = Pairs | TagParameters | TextArgument | ToolElement
ANY_MODEL = "any "
"""How the entry of a format begins that is not the format of one family of models."""

KINDS = {
    "JSON envelope": ("JSON calls", "One JSON object contains the name and the arguments."),
    "name, then JSON": ("A name, then JSON", "The name comes before the JSON object with the arguments."),
    "parameters": ("A pair for each parameter", "Each argument is written as a key and a value, most often in tags."),
    "element per tool": ("An element for each tool", "The tag names the tool; parameters are elements or attributes."),
    "Python call": ("Python calls", "Calls are written as Python code. It is read, never executed."),
    "odd values": ("Special value syntax", "Values are neither JSON nor text: the model has its own quotes."),
}
"""Of each kind of body: its heading, and what a reader must know."""


def code(text: str) -> str:
    """Text as code in HTML, on one line."""
    return f"<code>{escape(text.strip())}</code>"


def chips(format: Format) -> list[str]:
    """What a format can do, in a few words each."""
    shapes = len(format.also)
    possible, how = exported(format)
    refused = share_refused(format)
    every = {
        "types from the schema" if format.textual else "types in the text": True,
        "CDATA": any(isinstance(part, RAW) for part in format.call),
        "nested elements": any(isinstance(part, NestedTags) for part in format.call),
        f"thinking {code(format.thinking[0][0]) if format.thinking else ''}": bool(format.thinking),
        f"{shapes} more shape{'s' * (shapes > 1)} read": bool(shapes),
        f"stop {code(format.stops[0]) if format.stops else ''}": bool(format.stops),
        "grammar": bool(grammar_targets(format)),
        how: possible,
        f"{refused:.1%} of the markup sample refused": bool(refused),
    }
    return [chip for chip, holds in every.items() if holds]


AT_THE_END = "response_template where calls end the reply"


def exported(format: Format) -> tuple[bool, str]:
    """Whether the format can be a response_template, and how; otherwise the reason."""
    try:
        template = to_response_template(format, "assistant:")
    except FormatError as e:
        return False, str(e).partition(": ")[2]
    close = template["fields"]["tool_calls"].get("close_pattern", "")
    return True, "response_template" if close and "(?=" not in close else AT_THE_END


def exports() -> str:
    """How many formats can be a response_template, and why the others cannot."""
    results = {format.name: exported(format) for format in CATALOG}
    can = [how for possible, how in results.values() if possible]
    reasons = dict.fromkeys(why for possible, why in results.values() if not possible)
    lines = [
        f"{len(can)} of the {len(results)} formats can be written as a `response_template`,",
        f"{can.count(AT_THE_END)} of them only where calls end the reply. The others cannot:",
        "",
        *(
            f"- {', '.join(f'`{name}`' for name, (_, reason) in results.items() if reason == why)}: {why}."
            for why in reasons
        ),
    ]
    return "\n".join(lines) + "\n"


def card(format: Format) -> str:
    """One format: its name, who writes it, one call, and what it can do."""
    aliases = ", ".join(f"`{alias}`" for alias in format.aliases)
    written = ", ".join(format.families)
    lines = [
        '<div class="format-card" markdown>',
        "",
        f"### {format.name} {{ data-search-exclude }}",  # the lists by model are what is searched
        "",
        f"**{written[0].upper()}{written[1:]}**{f'<br>Also called {aliases}' if aliases else ''}",
        "",
        "````text",
        render_calls(format, [CALL], [WEATHER]).strip("\n"),
        "````",
        "",
        " ".join(f'<span class="chip">{chip}</span>' for chip in chips(format)),
        "",
        "</div>",
    ]
    return "\n".join(lines) + "\n"


def answers(names: Iterable[tuple[str, str]]) -> str:
    """Names in alphabetical order, each with the formats that it stands for."""
    found: dict[str, list[str]] = {}
    for name, format in names:
        found.setdefault(name, []).append(f"[`{format}`](#{format})")
    ordered = sorted(found, key=lambda name: name.strip("`").lower())
    items = "\n".join(f"- {name}: {', '.join(found[name])}" for name in ordered)
    return f'<div class="answers" markdown>\n\n{items}\n\n</div>\n'


def table() -> str:
    """The catalogue: formats by model and by parser, then a card for each, by kind of body."""
    families = [(name, format.name) for format in CATALOG for name in format.families]
    parsers = [(f"`{alias}`", format.name) for format in CATALOG for alias in format.aliases]
    parts = [
        answers((name, format) for name, format in families if not name.startswith(ANY_MODEL)),
        "Any other model:\n",
        *(f"- {name}: [`{format}`](#{format})" for name, format in families if name.startswith(ANY_MODEL)),
        "\n## By the name of its parser\n",
        "These names are aliases: pass the name of the parser that you would pass to vLLM or SGLang.\n",
        answers(parsers),
    ]
    for body, (heading, sentence) in KINDS.items():
        parts += [f"## {heading}\n", f"{sentence}\n"]
        parts += [card(format) for format in CATALOG if format.body == body]
    return "\n".join(parts)


def repairs() -> str:
    """The table of repairs: each code and what it means."""
    lines = ["| code | what was found and repaired |", "|---|---|", *(f"| `{c}` | {REPAIRS[c]} |" for c in REPAIRS)]
    return "\n".join(lines) + "\n"


def page_with(page: str, part: str, new: str) -> str:
    """The page with this part replaced."""
    start, end = MARKS[part]
    before, _, rest = page.partition(start)
    _, _, after = rest.partition(end)
    return f"{before}{start}\n{new}\n{end}{after}"


def main() -> None:
    """Print one of the parts, or write all of them."""
    if "--write" in sys.argv[1:]:
        for part, write in (("table", table), ("exports", exports), ("repairs", repairs)):
            page = DOCS / PAGES[part]
            page.write_text(page_with(page.read_text(encoding="utf-8"), part, write()), encoding="utf-8")
    elif "--exports" in sys.argv[1:]:
        sys.stdout.write(exports())
    elif "--repairs" in sys.argv[1:]:
        sys.stdout.write(repairs())
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main()
