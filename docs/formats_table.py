"""The table of all formats, the list of what can be a response_template, and the table of repairs, each on its page.

python docs/formats_table.py            print the table
python docs/formats_table.py --exports  print the list
python docs/formats_table.py --repairs  print the table of repairs
python docs/formats_table.py --write    put each into its page
"""

from __future__ import annotations

import sys
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
HEAD = ("format", "also called", "written by", "body", "one call", "supports", "markup refused")


def code(text: str) -> str:
    """Text as code in a table cell, with its line breaks."""
    return f"<code>{''.join('<br>' if c == chr(10) else _character(c) for c in text.strip())}</code>"


def _character(c: str) -> str:
    return f"&#{ord(c)};" if c in "<>&|*_`[]{}\\~\"'" or (c == " ") else c


def supports(format: Format) -> str:
    """What a format can do, in a few words."""
    told = ["types from the schema" if format.textual else "types in the text"]
    if any(isinstance(part, RAW) for part in format.call):
        told.append("CDATA")
    if any(isinstance(part, NestedTags) for part in format.call):
        told.append("nested elements")
    if format.thinking:
        told.append(f"thinking in {code(format.thinking[0][0])}")
    if format.also:
        told.append(f"{len(format.also)} more shape{'s' * (len(format.also) > 1)} read")
    if format.stops:
        told.append(f"stop {code(format.stops[0])}")
    if grammar_targets(format):
        told.append("grammar")
    possible, what = exported(format)
    return ", ".join([*told, what] if possible else told)


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
    told = {format.name: exported(format) for format in CATALOG}
    can = [what for possible, what in told.values() if possible]
    reasons = dict.fromkeys(why for possible, why in told.values() if not possible)
    lines = [
        f"{len(can)} of the {len(told)} formats can be written as a `response_template`,",
        f"{can.count(AT_THE_END)} of them only where calls end the reply. The others cannot:",
        "",
        *(f"- {', '.join(f'`{name}`' for name, (_, t) in told.items() if t == why)}: {why}." for why in reasons),
    ]
    return "\n".join(lines) + "\n"


def row(format: Format) -> str:
    """One format's line."""
    cells = (
        f"`{format.name}`",
        ", ".join(f"`{alias}`" for alias in format.aliases) or "-",
        ", ".join(format.families) or "-",
        format.body,
        code(render_calls(format, [CALL], [WEATHER])),
        supports(format),
        f"{share_refused(format):.1%}".replace("0.0%", "none"),
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """The whole table, in the order of the catalogue."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}", *map(row, CATALOG)]
    return "\n".join(lines) + "\n"


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
