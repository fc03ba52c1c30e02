# ruff: noqa: RUF001 - quotation marks
"""A reply that plainly calls an offered tool in a way that no reader understands: it is not an answer.

Pure: text and tools in, an event out. It reads no call: it only recognises that one was meant, by the tool's name in
the form of a call. Quoted, drafted and described calls are not attempts: they are in code, thinking or quotation marks,
or prose follows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Final

from agentkit.events import UnreadCall
from agentkit.formats.control import MARK
from agentkit.processor.format_tokens import last_end_of_thinking
from agentkit.toolspec import ToolSpec

_LONGEST: Final = 100_000  # characters of a reply that are searched, from its end


@cache
def _shown() -> re.Pattern[str]:
    """Return a pattern of text that is shown as code or quoted, in Markdown or in HTML, or in marks that touch it."""
    from agentkit.formats.asides import SHOWN

    return re.compile(
        r"^[ \t]*(?P<ticks>`{3,}|~{3,})[^\n]*\n(?P<inside>.*?)(?:^[ \t]*(?P=ticks)[`~]*[ \t]*$|\Z)"
        r"|(?<!`)(?P<run>`{1,2})(?!`)[^\n`]{1,2000}(?P=run)(?!`)|^[ \t]*>[^\n]*"
        r"|(?<!`)``(?!`)(?:[^\n`]|(?<!`)`(?!`)){1,2000}``(?!`)"
        r"|(?:(?<=\n\n)|\A)(?:(?:    |\t)[^\n]*(?:\n|\Z))+"
        rf"|<(?P<shows>{'|'.join(SHOWN)})\b[^<>]{{0,256}}>.*?(?:</(?P=shows)>|\Z)"
        r"|[\"'“„«](?=[<\[{]).{1,4000}?[>\]})][\"'”“»]",
        re.DOTALL | re.MULTILINE,
    )


_DESCRIBES: Final = re.compile(
    r"\b(?:e\.g|examples?|for instance|such as|like (?:this|so)|looks? like|would|could|format|syntax)\b", re.IGNORECASE
)
"""Words before a block with which a reply ends: it shows a call instead of making one."""

_KEYS: Final = "name|tool|tool_name|toolName|function|function_name|action|recipient_name"
_VALUES: Final = "arguments|parameters|args|input|params|action_input|kwargs|tool_input"
_QUOTE: Final = r"\\?[\"']"
_CALL: Final = r"(?:tool|function)[\s_▁-]?(?:call|use|sep|name)"
_TOKEN: Final = rf"(?<![\"'“”‘’«„(])[<\[{{|｜][^\s<>\[\]{{}}]{{0,24}}{_CALL}[^<>\[\]{{}}\n]{{0,80}}[>\]}}|｜]"
"""A token that only calls have around them, of any family: `<tool_call>`, `[TOOL_CALL]`, `<|tool_call_begin|>`.

Sources of those that no format declares: lmstudio-bug-tracker#1177, GenericAgent#804, goose#8269.
"""
_BETWEEN: Final = rf"(?:<[^\s<>]{{1,30}}\b|\s|[^\w\s]|\b(?:{_KEYS}|functions|id|type|json|call)\b){{0,64}}?"
_CLOSED: Final = re.compile(r"[\s\]})>;,\"'|｜]*(?:</?[^<>\n]{1,60}>[\s\]});,]*)*\Z")


def find_attempt(text: str, tools: Sequence[ToolSpec], *, alone: bool = True) -> UnreadCall | None:
    """Return the attempt at a call in a reply's visible text, from where it begins; None if there is none.

    With `alone`, a reply that is only the arguments of a tool is one; not where JSON is requested.
    """
    names = {spelling: tool.name for tool in tools for spelling in _spellings(tool)}
    named = any(spelling in text for spelling in names)
    if not named and not text.rstrip("`~ \n").endswith("}"):  # as in most replies
        return None
    said = strip_quotes(text[-_LONGEST:])
    if alone and (tool := _arguments_alone(said.strip(), tools)) is not None:
        return UnreadCall(said.strip(), tool.name)
    found = [m for pattern in _patterns(tuple(sorted(names, key=len, reverse=True))) for m in pattern.finditer(said)]
    for one in sorted(found, key=re.Match.start):
        if MARK in said[one.start() :]:  # copied from a result, where it was cut
            continue
        if one.re.groupindex.get("anywhere") or _ends_with_it(said, one.end()):
            return UnreadCall(said[one.start() :].strip(), names[one["name"]])
    return None


def ends_with(text: str, raw: str) -> bool:
    """Return whether a reply ends with a call: at most what closes its section follows."""
    at = text.rfind(raw)
    return at >= 0 and _CLOSED.match(text, at + len(raw)) is not None


def _arguments_alone(said: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """Return the only tool whose arguments a reply is, if it is nothing else: Qwen2.5-Coder-1.5B forgets the name."""
    try:
        keys = json.loads(said).keys()
    except (ValueError, AttributeError, RecursionError):
        return None
    fits = [
        t for t in tools if set(t.parameters.get("required") or [None]) <= keys <= {*t.parameters.get("properties", ())}
    ]
    return fits[0] if len(fits) == 1 else None


def _spellings(tool: ToolSpec) -> set[str]:
    """Return the spellings of a tool's name in calls."""
    tag = {tool.element.tag} if tool.element is not None else set[str]()
    return {tool.name, tool.name.replace("_", "-"), tool.name.replace(".", "_"), *tag}


def strip_quotes(text: str) -> str:
    """Return the text without thinking and without code; but with a code block with which it ends."""
    text = text[last_end_of_thinking(text) + 1 :]
    text = re.sub(r"<think(?:ing)?>.*\Z", "", text, flags=re.DOTALL)

    def kept(found: re.Match[str]) -> str:
        lead = text[: found.start()].rstrip().rpartition("\n\n")[2]
        makes = found["inside"] is not None and not text[found.end() :].strip() and not _DESCRIBES.search(lead)
        return found["inside"] if makes else " "

    return _shown().sub(kept, text)


@lru_cache(64)
def _patterns(spellings: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Return patterns of a call of one of these tools; with a group `anywhere` if prose may follow it."""
    name = rf"(?:functions[._])?(?P<name>{'|'.join(map(re.escape, spellings))})"
    key = rf"{_QUOTE}?(?:{_KEYS}){_QUOTE}?\s*[:=]\s*{_QUOTE}{name}(?:[_:]\d+)?{_QUOTE}"
    values = rf"{_QUOTE}?(?:{_VALUES}){_QUOTE}?\s*[:=]\s*[\[{{\"]"
    tag = r"(?:\w{1,24}[=:]|\w{1,24}[^<>\n]{0,64}?\b(?:name|tool|function)=[\"']?)?"
    either = (
        rf"(?P<anywhere>{_TOKEN}){_BETWEEN}{name}(?=\W|command|arg)",  # `<tool_call>bashcommand`: vllm#47190
        rf"(?<!\w){name}[:\d\s]{{0,16}}(?P<anywhere>{_TOKEN}|\[ARGS\]\s*\{{)",
        rf"(?P<anywhere>(?<!\w)(?:to=|call:)\s?){name}(?=\s*(?:json|code)?\s*(?:<\||\{{|\())",
        rf"(?P<anywhere>(?<!\w)functions\.){name}(?=(?::\d{{1,4}})?\s*(?:json)?\s*\{{\s*{_QUOTE})",  # stripped tokens
        rf"^[ \t]*(?:function\s)?{name}(?=(?:\[ARGS\]|json|\s+```json)?\s*\{{\s*{_QUOTE}|\s*<arg_key>)",
        rf"(?P<anywhere>^[ \t]*<{tag}){name}(?=[\"'\s/>])[^<>\n]{{0,256}}>?\s*(?:<\w|[\[{{])",
        rf"[{{,]\s*{key}[^\0]{{0,2000}}?{values}",
        rf"[{{,]\s*{_QUOTE}(?!name\b)(?:{_KEYS}){_QUOTE}\s*:\s*{_QUOTE}{name}{_QUOTE}",
        rf"[{{,]\s*{values}[^\0]{{0,2000}}?{key}",
        rf"^[ \t]*\[?(?:\w{{1,64}}\s?=\s?)?(?:await\s)?(?:\w{{1,24}}\.)?{name}\s?\(",
    )
    return tuple(re.compile(pattern, re.MULTILINE) for pattern in either)


def _ends_with_it(text: str, end: int) -> bool:
    """Return whether the attempt before `end` ends the text: only closing marks follow its last bracket."""
    last = max(text.rfind(bracket, end) for bracket in "})>]")
    return last < 0 or _CLOSED.match(text, last + 1) is not None
