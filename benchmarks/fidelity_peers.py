"""What other parsers read, those of vLLM, SGLang and transformers: runs where they are installed, without a GPU.

Started by `fidelity.py --peers`; reads its cases from stdin and writes what each peer read to stdout, as JSON. SGLang's
detectors are imported without the server around them. No cut lies in a marker: a server's tokens are not cut. vLLM's
parsers get the deltas of a tokenizer in which the format's markers are single tokens, as they are in the models' own;
several tokens arrive together, as they do from it. The templates of transformers are those that its server comes with.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
import types
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

NAMES: dict[str, tuple[str, ...]] = {  # a peer's name for one of agentkit's formats, other than an alias
    "apertus": ("apertus2509",),
    "cohere_command": ("cohere_command4",),
    "deepseek_v3": ("deepseekv3",),
    "deepseek_v31": ("deepseekv31",),
    "deepseek_v32": ("deepseekv32",),
    "deepseek_v4": ("deepseekv4",),
    "deepseek_v41": ("deepseekv41",),
    "granite-20b-fc": ("granite-20b-fc",),
    "harmony": ("gpt-oss",),
    "hermes": ("qwen25",),
    "llama3_json": ("llama3",),
    "minimax_m2": ("minimax-m2",),
    "minimax_m3": ("minimax-m3",),
}
OTHERS = {("SGLang", "muse"), ("SGLang", "internlm"), ("VLLM", "muse"), ("VLLM", "k2_horizon")}
"""Not judged: formats of the same name but another syntax, and a format that read nothing for an unknown reason."""
MARKER = re.compile(r"</?[|｜]?[\w▁.:|-]+[|｜]?>|<[|｜][^<>]{1,40}[|｜]>|\[/?[A-Z_]{4,}\]")


def names(case: dict[str, Any]) -> list[str]:
    """The names to look for at a peer."""
    return [*case["names"], *(name.replace("-", "_") for name in case["names"]), *NAMES.get(case["format"], ())]


def merged(parts: list[tuple[int, str | None, str]]) -> list[Any]:
    """The calls of which these are pieces: index, name, arguments as JSON."""
    calls: dict[int, list[str]] = {}
    for index, name, arguments in parts:
        call = calls.setdefault(index, ["", ""])
        call[0] += name or ""
        call[1] += arguments or ""
    return [[name, loaded(arguments)] for _, (name, arguments) in sorted(calls.items())]


def loaded(arguments: str) -> Any:
    """Arguments as their receiver decodes them; text that is no JSON stays text."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


# ---------------------------------------------------------------- SGLang


class SGLang:
    """The detectors of the installed version."""

    def __init__(self, tools: list[Any]) -> None:
        root = Path(str(distribution("sglang").locate_file("sglang")))
        inner = ("srt", "srt/function_call", "srt/entrypoints", "srt/entrypoints/openai")
        for path in ("", *inner):  # packages without their own start, which loads the server
            name = ".".join(["sglang", *filter(None, path.split("/"))])
            module = types.ModuleType(name)
            module.__path__ = [str(root / path)]
            sys.modules[name] = module
        self._parser = importlib.import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
        protocol = importlib.import_module("sglang.srt.entrypoints.openai.protocol")
        self._tools = [protocol.Tool(**tool) for tool in tools]
        self.label = f"SGLang {distribution('sglang').version}"

    def find(self, case: dict[str, Any]) -> str | None:
        """Its name for the case's format."""
        return next((name for name in names(case) if name in self._parser.ToolCallParserEnum), None)

    def whole(self, name: str, case: dict[str, Any]) -> list[Any]:
        """The whole text."""
        text, calls = self._parser(self._tools, name).parse_non_stream(case["text"])
        return [text, [[call.name, loaded(call.parameters)] for call in calls]]

    def cut(self, name: str, case: dict[str, Any]) -> list[Any]:
        """The text in pieces, with what the server adds at its end."""
        parser, text = self._parser(self._tools, name), ""
        parts: list[tuple[int, str | None, str]] = []
        for chunk in pieces(case):
            normal, calls = parser.parse_stream_chunk(chunk)
            text += normal or ""
            parts += [(call.tool_index, call.name, call.parameters) for call in calls]
        if hasattr(parser, "parse_stream_end"):
            normal, calls = parser.parse_stream_end()
            text += normal or ""
            parts += [(call.tool_index, call.name, call.parameters) for call in calls]
        parts += rest(getattr(parser, "detector", None))
        return [text, merged(parts)]


def pieces(case: dict[str, Any]) -> list[str]:
    """The case's pieces, cut after a marker where the cut lies in it: a server's markers arrive whole, being tokens."""
    ends, at = [], 0
    markers = [match.span() for match in MARKER.finditer(case["text"])]
    for chunk in case["chunks"]:
        at += len(chunk)
        ends.append(next((end for begin, end in markers if begin < at < end), at))
    ends = sorted(set(ends))
    return [case["text"][a:b] for a, b in zip([0, *ends], ends, strict=False)]


def rest(parser: Any) -> list[tuple[int, str | None, str]]:
    """Arguments of the last call that were not streamed yet: both servers send them when the text has ended."""
    known, streamed = getattr(parser, "prev_tool_call_arr", []), getattr(parser, "streamed_args_for_tool", [])
    last = len(known) - 1
    if last < 0 or last >= len(streamed):
        return []
    arguments = known[last].get("arguments", {})
    whole = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return [(last, None, whole[len(streamed[last]) :])] if whole.startswith(streamed[last]) else []


# ---------------------------------------------------------------- vLLM


class VLLM:
    """The tool parsers of the installed version."""

    def __init__(self, tools: list[Any]) -> None:
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
        from vllm.tool_parsers import ToolParserManager

        self._manager = ToolParserManager
        self.request = ChatCompletionRequest(
            model="m", messages=[{"role": "user", "content": "x"}], tools=tools, tool_choice="auto"
        )
        self._tokenizers: dict[str, Any] = {}
        self.label = f"vLLM {distribution('vllm').version}"

    def find(self, case: dict[str, Any]) -> str | None:
        """Its name for the case's format."""
        for name in names(case):
            with contextlib.suppress(Exception):
                self._manager.get_tool_parser(name)
                return name
        return None

    def _made(self, name: str, case: dict[str, Any]) -> tuple[Any, Any]:
        tokenizer = self._tokenizers.get(name)
        parser_class = self._manager.get_tool_parser(name)
        if tokenizer is None:
            source = Path(sys.modules[parser_class.__module__].__file__ or "").read_text(encoding="utf-8")
            tokenizer = self._tokenizers[name] = made_tokenizer(sorted(set(MARKER.findall(source + case["text"]))))
        parser = parser_class(tokenizer, self.request.tools)
        with contextlib.suppress(AttributeError):
            parser.adjust_request(self.request.model_copy())
        return parser, tokenizer

    def whole(self, name: str, case: dict[str, Any]) -> list[Any]:
        """The whole text."""
        parser, _ = self._made(name, case)
        found = parser.extract_tool_calls(case["text"], self.request)
        calls = [[call.function.name, loaded(call.function.arguments)] for call in found.tool_calls]
        return [found.content or "", calls]

    def cut(self, name: str, case: dict[str, Any]) -> list[Any]:
        """The text in deltas of whole tokens, at about the case's cuts."""
        parser, tokenizer = self._made(name, case)
        before, seen, text = "", [], ""
        parts: list[tuple[int, str | None, str]] = []
        for delta, ids in deltas(tokenizer, case):
            now, known = before + delta, seen + ids
            said = parser.extract_tool_calls_streaming(before, now, delta, seen, known, ids, self.request)
            before, seen = now, known
            if said is None:
                continue
            text += said.content or ""
            parts += [
                (call.index, call.function and call.function.name, (call.function and call.function.arguments) or "")
                for call in said.tool_calls or ()
            ]
        return [text, merged(parts + rest(parser))]


def deltas(tokenizer: Any, case: dict[str, Any]) -> list[tuple[str, list[int]]]:
    """Tokens in groups: a group ends with the token in which the case's cut lies."""
    ends, at = [], 0
    for chunk in case["chunks"]:
        at += len(chunk)
        ends.append(at)
    whole = tokenizer(case["text"], return_offsets_mapping=True, add_special_tokens=False)
    found: list[tuple[str, list[int]]] = []
    begin, ids = 0, []
    for number, (_, end) in zip(whole["input_ids"], whole["offset_mapping"], strict=True):
        ids.append(number)
        if end >= ends[0] or end == len(case["text"]):
            found.append((case["text"][begin:end], ids))
            begin, ids = end, []
            while len(ends) > 1 and ends[0] <= end:
                ends.pop(0)
    return found


def made_tokenizer(markers: list[str]) -> Any:
    """A tokenizer of single characters with these markers as special tokens."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    characters = [chr(code) for code in (*range(1, 0x250), *range(0x300, 0x370), *range(0x2000, 0x2100))]
    more = [*"日本語😀▁｜½\u0301\n\t\r"]
    vocabulary = {c: n for n, c in enumerate(dict.fromkeys(["<unk>", *characters, *more]))}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    inner.add_special_tokens([AddedToken(marker, normalized=False) for marker in markers])
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


# ---------------------------------------------------------------- transformers


class Transformers:
    """The response parser of the installed version, with the templates of its server."""

    MODELS: ClassVar = {"hermes": "qwen3", "qwen3_coder": "qwen3_5", "gemma4": "gemma4"}
    """The kind of model whose template reads one of agentkit's formats."""

    def __init__(self, tools: list[Any]) -> None:
        self._parser = importlib.import_module("transformers.utils.chat_parsing").ResponseParser
        utils = importlib.import_module("transformers.cli.serving.utils")
        self._templates = {m: t for models, t in utils._RESPONSE_TEMPLATE_FALLBACKS.items() for m in models}
        self._tools = tools
        self.label = f"transformers {distribution('transformers').version}"

    def find(self, case: dict[str, Any]) -> str | None:
        """The kind of model."""
        return self.MODELS.get(case["format"])

    def _read(self, name: str, chunks: list[str]) -> list[Any]:
        parser = self._parser(self._templates[name], prefix="", tools=self._tools)
        for chunk in chunks:
            parser.feed(chunk)
        message, _ = parser.finalize()
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        return [message.get("content") or "", [[call.get("name"), call.get("arguments")] for call in calls]]

    def whole(self, name: str, case: dict[str, Any]) -> list[Any]:
        """The whole text."""
        return self._read(name, [case["text"]])

    def cut(self, name: str, case: dict[str, Any]) -> list[Any]:
        """The text in pieces."""
        return self._read(name, pieces(case))


# ---------------------------------------------------------------- all of it


def reading(peer: Any, case: dict[str, Any]) -> dict[str, Any] | None:
    """What a peer reads of a case; None where it has no such format."""
    name = peer.find(case)
    if name is None or (type(peer).__name__, case["format"]) in OTHERS:
        return None
    try:
        return {"whole": peer.whole(name, case), "cut": peer.cut(name, case)}
    except NotImplementedError:
        return None
    except Exception as e:  # noqa: BLE001 - whatever it raises is its reading
        return {"raised": f"{type(e).__name__}: {e}"}


def main() -> None:
    """Read the cases with every peer that is here."""
    if sys.stdin.isatty() or not (asked := sys.stdin.read()):
        print("fidelity.py --peers starts this, and writes its cases to standard input")
        return
    given = json.loads(asked)
    found: dict[str, Any] = {}
    out, sys.stdout = sys.stdout, io.StringIO()  # what they print is not a result
    for kind, package in ((VLLM, "vllm"), (SGLang, "sglang"), (Transformers, "transformers")):
        try:
            distribution(package)
        except PackageNotFoundError:
            continue
        assert find_spec(package) is not None
        peer: Any = kind(given["tools"])
        found[peer.label] = [reading(peer, case) for case in given["cases"]]
    out.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
