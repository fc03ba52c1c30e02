"""Engines that enforce grammars, all asked in the same way. Knows grammars as texts and structural tags, no format.

llguidance comes with the development environment. The others run where they are at hand: xgrammar as a package,
llama.cpp as a source tree that LLAMA_CPP points to, of which two files are compiled.
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.gbnf_to_lark import gbnf_to_lark

from agentkit.grammar.arguments_as_rules import Target

TOKENIZER = LLTokenizer("byte")
# a state of an automaton is one item of llguidance for each character read; llama.cpp has no such bound
LIMITS = LLParserLimits(max_items_in_row=100_000, step_max_items=1_000_000)


class Mask(Protocol):
    """A grammar that goes with a text as it is written, byte by byte."""

    def reset(self) -> None: ...
    def take(self, text: bytes) -> int:
        """How many bytes of `text` the grammar goes along with."""
        ...

    def back(self, count: int) -> None: ...
    def forced(self) -> bytes:
        """What must come next."""
        ...

    def allowed(self) -> list[int]: ...
    def complete(self) -> bool:
        """Whether the text may end here."""
        ...


def accepts(found: Mask, text: str) -> bool:
    """Whether the grammar describes this whole text."""
    found.reset()
    raw = text.encode()
    return found.take(raw) == len(raw) and found.complete()


def generate(found: Mask, pieces: list[str], ends: list[str], rng: random.Random) -> str:
    """A random text under the mask: markers as far as they are allowed, else single bytes; ended by what closes."""
    found.reset()
    out = bytearray()
    budget = rng.choice([20, 60, 150])
    closers = [p.encode() for p in ('"', "'", "]", "}", ")", "&quot;", *ends)]
    for _ in range(4000):
        if found.complete() and (budget <= 0 or rng.random() < 0.1):
            break
        forced = found.forced() if budget > 0 else b""
        if not forced:
            choices = closers if budget <= 0 else [p.encode() for p in rng.sample(pieces, 4)]
            for choice in rng.sample(choices, len(choices)):
                fits = found.take(choice)
                if fits == len(choice) or (fits and budget > 0):
                    out += choice[:fits]
                    break
                found.back(fits)
            else:
                if not (bytes_ := found.allowed()):
                    break
                forced = bytes([rng.choice(bytes_)])
        if forced:
            assert found.take(forced) == len(forced), (bytes(out), forced)
            out += forced
        budget -= 1
    assert found.complete(), bytes(out)
    return out.decode()


# ---------------------------------------------------------------- llguidance


class Guidance:
    """llguidance, with GBNF, which it turns into Lark of its own."""

    def __init__(self, text: str) -> None:
        self.unused = LLMatcher(TOKENIZER, LLMatcher.grammar_from_lark(gbnf_to_lark(text)), limits=LIMITS)
        assert not self.unused.is_error(), self.unused.get_error()
        self.found = self.unused.deep_copy()

    def reset(self) -> None:
        # not the matcher's own reset: llguidance 1.9.1 may then give a mask that it computed for an earlier text
        self.found = self.unused.deep_copy()

    def take(self, text: bytes) -> int:
        return int(self.found.try_consume_tokens(list(text)))

    def back(self, count: int) -> None:
        assert self.found.rollback(count)

    def forced(self) -> bytes:
        return bytes(self.found.compute_ff_bytes())

    def allowed(self) -> list[int]:
        if self.found.is_stopped():
            return []
        bits = self.found.compute_bitmask()
        return [t for t in range(256) if bits[t >> 3] >> (t & 7) & 1]

    def complete(self) -> bool:
        return bool(self.found.is_accepting() or self.found.is_stopped())


# ---------------------------------------------------------------- xgrammar

END = 256  # the token that ends a text


@cache
def _compiler() -> Any:
    import xgrammar

    vocabulary = [*(bytes([i]) for i in range(256)), b"</s>"]
    info = xgrammar.TokenizerInfo(
        vocabulary, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(vocabulary), stop_token_ids=[END]
    )
    return xgrammar.GrammarCompiler(info, max_threads=1)


class XGrammar:
    """xgrammar, with a structural tag or GBNF, which it calls EBNF."""

    def __init__(self, text: Any, target: Target) -> None:
        import xgrammar

        compile_ = _compiler().compile_structural_tag if target == "structural_tag" else _compiler().compile_grammar
        compiled = compile_(text if target == "structural_tag" else xgrammar.Grammar.from_ebnf(text))
        self.found = xgrammar.GrammarMatcher(compiled, max_rollback_tokens=-1)
        self.bits = xgrammar.allocate_token_bitmask(1, END + 1)

    def reset(self) -> None:
        self.found.reset()

    def take(self, text: bytes) -> int:
        return next((n for n, byte in enumerate(text) if not self.found.accept_token(byte)), len(text))

    def back(self, count: int) -> None:
        if count:
            self.found.rollback(count)

    def forced(self) -> bytes:
        return b""

    def _next(self) -> list[int]:
        self.found.fill_next_token_bitmask(self.bits)
        words = [int(w) & 0xFFFFFFFF for w in self.bits[0]]
        return [t for t in range(END + 1) if words[t >> 5] >> (t & 31) & 1]

    def allowed(self) -> list[int]:
        return [t for t in self._next() if t != END]

    def complete(self) -> bool:
        return END in self._next()


# ---------------------------------------------------------------- llama.cpp

LLAMA = os.environ.get("LLAMA_CPP", "")


@cache
def library(folder: Path) -> ctypes.CDLL:
    """The grammar engine of llama.cpp, compiled into this folder."""
    source, made = Path(LLAMA), folder / "llama_grammar.so"
    files = [Path(__file__).parents[1] / "llama_grammar.cpp"]
    files += [source / "src" / f"{name}.cpp" for name in ("llama-grammar", "unicode", "unicode-data")]
    headers = [f"-I{source / name}" for name in ("src", "include", "ggml/include")]
    subprocess.run(["g++", "-O1", "-std=c++17", "-shared", "-fPIC", *headers, *files, "-o", made], check=True)
    found = ctypes.CDLL(str(made))
    found.load.restype = ctypes.c_void_p
    found.load.argtypes = [ctypes.c_char_p]
    found.accepts.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    found.release.argtypes = [ctypes.c_void_p]
    return found


class Llama:
    """llama.cpp, with GBNF; only asked about whole texts."""

    def __init__(self, text: str, folder: Path) -> None:
        self.library = library(folder)
        self.found = self.library.load(text.encode())
        assert self.found, text

    def accepts(self, text: str) -> bool:
        return bool(self.library.accepts(self.found, text.encode()))

    def __del__(self) -> None:
        self.library.release(self.found)
