"""A model searches, reads the page that it found, and answers. Both servers run on this machine, without a network.

In earnest: `SerperSearch()` with a key in `SERPER_API_KEY`, and `Web()`, which reaches global addresses only.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agentkit import Agent, ToolCall
from agentkit.testing import ScriptedModel
from agentkit_tools.search import SerperSearch
from agentkit_tools.web import Web


class Site(BaseHTTPRequestHandler):
    """A search service and one page."""

    def do_POST(self) -> None:
        """Answer a search."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.reply("application/json", json.dumps({"organic": [{"title": asked["q"], "link": f"{ADDRESS}/tea"}]}))

    def do_GET(self) -> None:
        """Show the page."""
        self.reply("text/html", "<h1>Tea</h1><p>Green tea: <b>two minutes</b> at 80 °C.<script>alert(1)</script>")

    def reply(self, kind: str, text: str) -> None:
        """Send a text."""
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
threading.Thread(target=server.serve_forever, daemon=True).start()
ADDRESS = f"http://127.0.0.1:{server.server_port}"

model = ScriptedModel(
    [
        ToolCall("", "serper_search", {"query": "green tea"}),
        ToolCall("", "fetch_page", {"url": f"{ADDRESS}/tea"}),
        "Two minutes, at 80 °C.",
    ]
)
tools = [SerperSearch(url=f"{ADDRESS}/search", api_key="any"), Web(allow=["127.0.0.1"])]
result = Agent(model, tools=tools).run_sync("How long does green tea take?")
for message in result.messages:
    print(f"{type(message).__name__:17} {message.content}".replace(ADDRESS, "http://tea.example"))
server.shutdown()
server.server_close()
