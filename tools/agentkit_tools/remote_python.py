"""Python code, run by a code server: `agentkit python-server`, or open-instruct's."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit import Tool, ToolResult, openapi_schema, xml_schema
from agentkit.errors import ConfigError
from agentkit_tools.network.addresses import RequestFailed
from agentkit_tools.network.http_client import HttpClient


class RemotePython(Tool):
    """Runs Python code on a server.

    Args:
        api_endpoint: the server's address for code, such as `http://code.internal:1212/execute`.
        timeout: seconds for the code; an answer may take twice as long and 10 seconds more.

    Raises:
        ConfigError: the timeout is not above 0.
    """

    def __init__(self, api_endpoint: str, *, timeout: float = 5.0) -> None:
        if not timeout > 0:
            raise ConfigError(f"timeout={timeout!r}: expected seconds above 0")
        self._url = api_endpoint
        self._seconds = timeout
        self._client = HttpClient(service=api_endpoint, timeout=2 * timeout + 10)

    @openapi_schema
    @xml_schema(name="python", content="code")
    async def python(self, code: str) -> ToolResult:
        """Run Python code. You get what it prints, and the traceback if it fails.

        Import and define everything that the code uses: nothing is kept between calls.

        Args:
            code: the code to run
        """
        try:
            body = {"code": code, "timeout": self._seconds}
            answer = (await self._client.request("POST", self._url, body=body)).json()
        except RequestFailed as e:
            return e.result
        if not isinstance(answer, Mapping) or "output" not in answer:
            return ToolResult(error=f"the code server answered {answer!r:.100}; expected output and error")
        texts = [str(answer[key]).rstrip("\n") for key in ("output", "error") if answer.get(key)]
        return ToolResult("\n".join(texts) or "no output: nothing was printed")
