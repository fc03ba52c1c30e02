"""The pages' diagrams: drawn once from their Mermaid source, so that the site shows them without a network or a script.

A ```mermaid block is the source, and what GitHub draws. On the site a picture replaces it, which is named after a hash
of the source: a diagram that has changed has no picture until it is drawn again.

python docs/diagrams.py                                     list the diagrams that are not drawn, and unused pictures
python docs/diagrams.py --write node_modules/mermaid/dist/mermaid.min.js    draw them (npm install mermaid; chromium)

mkdocs calls `on_page_markdown`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PICTURES = DOCS / "images" / "diagrams"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r"^\s*accTitle: (.+)$", re.MULTILINE)
THEMES = {"light": "neutral", "dark": "dark"}
SETTINGS = {
    "startOnLoad": False,
    "securityLevel": "strict",
    "fontFamily": "DejaVu Sans, Verdana, Arial, sans-serif",  # the widest first: text that fits it fits the others
    "htmlLabels": False,  # a picture cannot contain HTML
    "flowchart": {"htmlLabels": False, "useMaxWidth": False, "wrappingWidth": 260},
    "state": {"useMaxWidth": False},
    "sequence": {"useMaxWidth": False},
}
DRAW = """<!doctype html><body><pre id="done"></pre><script src="mermaid.js"></script><script>
(async () => {{
  const drawn = {{}};
  for (const [name, theme, source] of {jobs}) {{
    mermaid.initialize({{...{settings}, theme}});
    drawn[name] = (await mermaid.render("d" + name.replace(/\\W/g, ""), source)).svg;
  }}
  document.getElementById("done").textContent = btoa(unescape(encodeURIComponent(JSON.stringify(drawn))));
}})();
</script>"""


def picture(source: str, shade: str) -> Path:
    """Where the picture of a diagram is, in a shade: `light` or `dark`."""
    return PICTURES / f"{hashlib.sha256(source.encode()).hexdigest()[:12]}-{shade}.svg"


def diagrams() -> dict[Path, str]:
    """Every picture that the pages need, with its source."""
    pages = (page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md")))
    sources = [source for page in pages for source in FENCE.findall(page)]
    return {picture(source, shade): source for source in sources for shade in THEMES}


def missing() -> list[Path]:
    """The pictures that are not drawn."""
    return [path for path in diagrams() if not path.exists()]


def unused() -> list[Path]:
    """The pictures that no page needs any more."""
    return sorted(set(PICTURES.glob("*.svg")) - set(diagrams()))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace each diagram of a page by its two pictures, of which the theme shows one."""
    up = "../" * page.file.src_uri.count("/")

    def pictures(found: re.Match[str]) -> str:
        title = TITLE.search(found[1])
        if title is None:
            raise ValueError(f"{page.file.src_uri}: a diagram has no accTitle:, the text of its picture")
        return "\n".join(
            f"![{title[1]}]({up}images/diagrams/{picture(found[1], shade).name}#only-{shade})" for shade in THEMES
        )

    return FENCE.sub(pictures, markdown)


def draw(mermaid: Path) -> None:
    """Draw what is missing, and remove what is unused."""
    jobs = [(path.name, THEMES[path.stem.rpartition("-")[2]], diagrams()[path]) for path in missing()]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mermaid.js").symlink_to(mermaid.resolve())
        html = Path(folder) / "draw.html"
        html.write_text(DRAW.format(jobs=json.dumps(jobs), settings=json.dumps(SETTINGS)), encoding="utf-8")
        browser = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=60000",
            "--dump-dom",
        ]
        shown = subprocess.run([*browser, html.as_uri()], capture_output=True, text=True, check=True).stdout
    found = re.search(r'<pre id="done">([^<]+)</pre>', shown)
    if jobs and not found:
        raise SystemExit("the browser drew nothing: is a diagram's source wrong?")
    drawn = json.loads(base64.b64decode(found[1])) if found else {}
    for name, svg in drawn.items():
        (PICTURES / name).write_text(svg + "\n", encoding="utf-8")
    for path in unused():
        path.unlink()


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        draw(Path(sys.argv[-1]))
    for path in [*missing(), *unused()]:
        sys.stdout.write(f"{path.name}: {'unused' if path.exists() else 'not drawn'}\n")
