"""Streaming Markdown: literal text in, literal elements out, for any cutting of the text and in linear time."""

# ruff: noqa: E501 - literal events and scripts: one a line

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from browser import CHROMIUM
from static_page import TREE, Modules, modules

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine (Debian: chromium)")

SETUP: Final = f"""async () => {{
  const {{ MarkdownStream }} = await import("/markdown.js");
  window.draw = (pieces) => {{
    const root = document.body.appendChild(document.createElement("div"));
    const stream = new MarkdownStream(root);
    for (const piece of pieces) stream.write(piece);
    stream.end();
    root.remove();
    return root;
  }};
  window.tree = {TREE};
}}"""

CASES: Final = {
    "Hello\nworld": 'p("Hello\\nworld")',
    "a  \nb\\\nc": 'p("a" br() "b" br() "c")',
    "# One *x*\n### Two ##\n#no": 'h3[level-1]("One " em("x")) h4[level-3]("Two") p("#no")',
    "**b** *i* ***bi*** ~~s~~ __b__ _i_": (
        'p(strong("b") " " em("i") " " em(strong("bi")) " " del("s") " " strong("b") " " em("i"))'
    ),
    "**a *b***": 'p(strong("a " em("b")))',
    "snake_case_name 2 * 3 * 4": 'p("snake_case_name 2 * 3 * 4")',
    "`a *b*` ``c ` d``": 'p(code("a *b*") " " code("c ` d"))',
    r"\*no\* \# &amp; &lt;": 'p("*no* # & <")',
    "<b>x</b><script>": 'p("<b>x</b><script>")',
    "[docs](https://a.org/x)": 'p(a[https://a.org/x]("docs") span[host](" (a.org)"))',
    "[a.org](https://a.org)": 'p(a[https://a.org/]("a.org"))',
    "see https://a.org/b.": 'p("see " a[https://a.org/b]("https://a.org/b") ".")',
    "<https://a.org> <me@a.org>": 'p(a[https://a.org/]("https://a.org") " " a[mailto:me@a.org]("me@a.org"))',
    "https://a.org@b.org/": 'p(a[https://a.org@b.org/]("https://a.org@b.org/") span[host](" (b.org)"))',
    "[x](javascript:alert(1)) [y](data:text/html,1) [z](/etc)": 'p("x y z")',
    "![cat](https://a.org/c.png) ![dog](data:image/png;base64,AA)": (
        'p(a[https://a.org/c.png]("image: a.org (cat)") " dog")'
    ),
    "- a\n- b\n  - c\n\n  d\n* e": ('ul(li(p("a")) li(p("b") ul(li(p("c"))) p("d"))) ul(li(p("e")))'),
    "3. a\n  - b\n4. c": 'ol[3](li(p("a") ul(li(p("b")))) li(p("c")))',
    "- [x] a\n- [ ] b": 'ul(li(p(span[task]("☑") "a")) li(p(span[task]("☐") "b")))',
    "> a\nb\n> > c\n\nd": 'blockquote(p("a\\nb") blockquote(p("c"))) p("d")',
    "```py\nx = 1\n\n\ty\n```\nz": (
        'div[code](div[code-head](span("py") button[copy-code]("Copy")) pre(code(span[lines]("x = 1\\n\\n\\ty")))) p("z")'
    ),
    "- a\n  ```\n  b\n   c\n  ```": (
        'ul(li(p("a") div[code](div[code-head](span("text") button[copy-code]("Copy")) pre(code(span[lines]("b\\n c"))))))'
    ),
    "| a | b |\n|--|:-:|\n| 1 | `x` |\n| \\| |\nafter": (
        'div[table](table(thead(tr(th("a") th[center]("b"))) tbody(tr(td("1") td[center](code("x"))) '
        'tr(td("|") td[center]())))) p("after")'
    ),
    "a\n---\n***": 'p("a") hr() hr()',
}
HOSTILE: Final = (
    "[", "*", "`", "_", "~", "<", "&", "!", "\\", "#", "a", "h", " x", "> ", "- ", "1. ", "*a ", "**a ", "_a*b ", "~~a ", "`a``b ",
    "[a](", "![", "[x]((", "<a ", "http://", "# # ", "\n>", "- a\n", "|a", "```\n", "\t- ",
)  # fmt: skip
MIXED: Final = (
    "\n\n".join(CASES) + '\n*a ` b* c ` d **x [y](https://a.org "t") `code\nspan` **\n1) a\n   1) b\n``` `\nx\n'
)


@pytest.fixture(scope="module")
def page() -> Iterator[Modules]:
    with modules(SETUP) as opened:
        yield opened


@pytest.mark.parametrize("text", CASES)
def test_text_becomes_elements(page: Modules, text: str) -> None:
    assert page.run("(text) => tree(draw([text]))", text) == CASES[text]


@pytest.mark.parametrize("text", [*CASES, MIXED])
def test_any_cutting_gives_the_same_elements(page: Modules, text: str) -> None:
    different = page.run(
        """(text) => {
          const whole = tree(draw([text]));
          const at = [...text].map((_, n) => n).filter((n) => tree(draw([text.slice(0, n), text.slice(n)])) !== whole);
          return tree(draw(text.split(""))) === whole ? at : [...at, "each character"];
        }""",
        text,
    )
    assert different == []


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.share(len(HOSTILE))  # seconds each
def test_hostile_text_takes_linear_time(page: Modules, piece: str) -> None:
    """Four times the text takes far less than sixteen times as long; below 200 ms nothing is compared."""
    short, long, same = page.run(
        """(piece) => {
          const time = (n) => Math.min(...[1, 2, 3].map(() => {
            const text = piece.repeat(Math.ceil(n / piece.length));
            const start = performance.now();
            draw([text]);
            return performance.now() - start;
          }));
          const text = piece.repeat(Math.ceil(3000 / piece.length));
          const cut = text.match(/[^]{1,7}/g);
          return [time(10000), time(40000), tree(draw(cut)) === tree(draw([text]))];
        }""",
        piece,
    )
    assert same
    assert long < 200 or long < 9 * short


def test_a_table_of_very_many_columns_is_text(page: Modules) -> None:
    text = "|" + "a|" * 3000 + "\n|" + "-|" * 3000 + "\n"
    assert page.run("(text) => draw([text]).querySelectorAll('*').length", text) == 1


def test_what_is_settled_is_not_touched(page: Modules) -> None:
    """The blocks before the open one see no mutation, and a delta's work does not grow with the reply."""
    touched = page.run(
        """async () => {
          const { MarkdownStream } = await import("/markdown.js");
          const root = document.createElement("div");
          const stream = new MarkdownStream(root);
          for (let n = 0; n < 200; n++) stream.write("Some **words** here\\n\\n- item\\n\\n");
          const settled = [...root.children].slice(0, -1);
          let count = 0;
          for (const block of settled) new MutationObserver((all) => (count += all.length))
            .observe(block, { subtree: true, childList: true, characterData: true });
          stream.write("more\\n\\n# Head\\n\\ntext");
          await new Promise((done) => setTimeout(done, 0));
          return [count, settled.every((block, n) => root.children[n] === block)];
        }"""
    )
    assert touched == [0, True]


def test_the_open_mark_is_drawn_as_if_it_were_closed(page: Modules) -> None:
    shown = page.run(
        """async () => {
          const { MarkdownStream } = await import("/markdown.js");
          const root = document.createElement("div");
          new MarkdownStream(root).write("a **bold te");
          return tree(root);
        }"""
    )
    assert shown == 'p("a " strong("bold te"))'
