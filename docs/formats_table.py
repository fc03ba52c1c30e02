"""The table of all formats in docs/formats.md, made from the catalogue.

python docs/formats_table.py          print the table
python docs/formats_table.py --write  put it into the page
"""

from __future__ import annotations

import sys
from pathlib import Path

from agentkit.formats import CATALOG, Format, ToolSpec, render_calls
from agentkit.formats.grammar import grammar_targets
from agentkit.formats.spec import NestedTags, Pairs, TagParameters, TextArgument, ToolElement
from agentkit.messages import ToolCall

PAGE = Path(__file__).parent / "formats.md"
sys.path.append(str(PAGE.parent.parent / "tests"))
from markup import share_refused  # noqa: E402  # the sample is that of the tests

START, END = "<!-- table: python docs/formats_table.py --write -->\n", "<!-- end of table -->\n"

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
    """Text as code in one cell of a table, its line breaks kept."""
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
    return ", ".join(told)


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


def page_with(new: str) -> str:
    """The page with this table in it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{new}\n{END}{after}"


def main() -> None:
    """Print the table, or write it."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page_with(table()), encoding="utf-8")
    else:
        sys.stdout.write(table())


if __name__ == "__main__":
    main()
