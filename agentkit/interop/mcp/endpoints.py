"""Where an MCP server is: a command to start, or a URL; with its secrets kept apart.

Starts and connects to nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import shutil
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from typing_extensions import TypedDict  # pydantic does not read that of typing before Python 3.12

from agentkit.checks.bounds import refuse_types
from agentkit.checks.keys import shown_url
from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError
from agentkit.models.secrets import MIN_SECRET, Address, is_secret, without_secrets

_LOG: Final = logging.getLogger("agentkit.mcp")
INHERITED: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The only environment variables that a local server inherits by default. Source: the official SDK's list for POSIX."""

_ORDINARY: Final = frozenset(("accept", "accept-language", "content-type", "user-agent"))
_OPAQUE: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^\s/\\]{8,}\Z")  # letters and digits, neither a path nor prose
_LAUNCHERS: Final = frozenset(("npx", "uvx", "uv", "bunx", "node", "bun", "deno", "python", "python3", "run", "exec"))
_DIRECTS: Final = re.compile(
    r"(?i)(?:PATH|HOME|SHELL|EDITOR|PAGER|IFS|ENV|BASH_ENV|BASH_FUNC_.*|PROMPT_COMMAND|CLASSPATH|VIRTUAL_ENV"
    r"|(?:GCONV|GLIBC|LD|DYLD|JAVA|_JAVA|JDK|MAVEN|GRADLE|NPM_CONFIG|GO|CARGO|RUST|GIT|SSH|UV|PIP|OPENSSL|XDG)_.*"
    r"|(?:PYTHON|NODE|DENO|BUN|PERL|RUBY|GEM|BUNDLE|LUA|PHP|DOTNET|CONDA|GOPATH|GOROOT|GOFLAGS).*)\Z"
)
"""Variables that decide which code runs. Whoever approves a command sees their values, unless one is a key."""
_AFFIXES: Final = re.compile(r"\A(?:mcp[-_])?(?:server[-_])?|[-_](?:mcp|server)\Z|(?:\.[a-z]{1,3}|@[\w.^~-]+)\Z")


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that is started as a process and speaks over its standard input and output.

    Args:
        argv: the program and its arguments.
        env: environment variables for it, in addition to the inherited ones.
        cwd: its working folder; None for the current one.
        shown: the command as it may be seen, if `argv` contains secrets.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    shown: tuple[str, ...] | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no message may show."""
        hidden = set(self.argv) - set(self.shown or self.argv)
        return _spelled([*(v for name, v in self.env.items() if _hides(name, v)), *(h for h in hidden if len(h) > 7)])

    @property
    def identity(self) -> bytes:
        """The program as it is found, its arguments, folder and variables, with their values."""
        return self._identified(self.argv, self.env).encode()

    @property
    def origin(self) -> str:
        """The identity as text, without its secrets."""
        seen = {name: None if _hides(name, value) else value for name, value in self.env.items()}
        return self._identified(self.shown or self.argv, seen)

    def _identified(self, argv: Sequence[str], env: Mapping[str, str | None]) -> str:
        folder = os.path.abspath(self.cwd or ".")
        program = shutil.which(self.argv[0], path=self.env.get("PATH", os.environ.get("PATH")))
        found = program and os.path.join(folder, program)
        return json.dumps([found, argv, folder, sorted(env.items())])

    @property
    def name(self) -> str:
        """A name for its tools, from the program."""
        for word in (w for w in self.argv if not w.startswith("-")):
            program = PurePath(word).name
            if re.sub(r"[\d.]+\Z|\.exe\Z", "", program) not in _LAUNCHERS:
                return _short(program)
        return "mcp"

    def __str__(self) -> str:
        where = f" (in {self.cwd})" if self.cwd else ""
        names = f", with {', '.join(map(_said, self.env, self.env.values()))} in its environment" if self.env else ""
        return f"{shlex.join(self.shown or self.argv)}{where}{names}"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server that is reached by streamable HTTP.

    Args:
        address: its URL, separated from its credentials.
        headers: sent with each request, to this server only.
    """

    address: Address = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that no message may show."""
        given = (v for name, v in self.headers.items() if name.lower() not in _ORDINARY)
        tokens = [part for value in given for part in (value, value.rpartition(" ")[2])]
        return _spelled([*self.address.secrets, *tokens])

    @property
    def name(self) -> str:
        """A name for its tools, from the host; that of an IP address says nothing."""
        host = urllib.parse.urlsplit(self.address.url).hostname or ""
        return "mcp" if re.fullmatch(r"[\d.]+|.*:.*", host) else _short(host)

    @property
    def origin(self) -> str:
        """The URL without its secrets."""
        return self.address.url

    def __str__(self) -> str:
        return self.address.url

    __repr__ = __str__


Endpoint = LocalServer | RemoteServer


class ServerEntry(TypedDict, total=False):
    """An entry of an `mcpServers` file, as far as it has a meaning here."""

    command: str
    args: Sequence[str] | None
    env: Mapping[str, str] | None
    cwd: str | None
    url: str
    headers: Mapping[str, str] | None
    type: str
    disabled: bool


def endpoint(
    server: Any, headers: Mapping[str, str] | None, env: Mapping[str, str] | None, cwd: str | None
) -> Endpoint:
    """Read a server as users write it.

    Raises:
        ConfigError: it is none of the forms.
    """
    if isinstance(server, Mapping):
        return _entry(server, headers, env, cwd)
    if isinstance(server, LocalServer | RemoteServer):
        return server
    if isinstance(server, str) and server.startswith(("http://", "https://")):
        if env or cwd:
            raise ConfigError("env= and cwd= are for a local server; a server with a URL gets headers=")
        return RemoteServer(_address(server), _checked(dict(headers or {})))
    if isinstance(server, str):
        raise ConfigError(
            f"MCPTools({server!r:.100}): expected a URL, https://…, or a command as a list of words, "
            f"{shlex.split(server)!r:.200}"
        )
    if headers:
        raise ConfigError("headers= is for a server with a URL; a local server gets env=")
    if not isinstance(server, Sequence) or not server or not all(isinstance(word, str) for word in server):
        raise ConfigError(
            f"MCPTools({server!r:.100}): expected a URL, a command as a list of strings, or "
            "{'command': …, 'args': […], 'env': {…}}"
        )
    return LocalServer(tuple(server), dict(env or {}), cwd)


def _entry(
    entry: Mapping[str, Any], headers: Mapping[str, str] | None, env: Mapping[str, str] | None, cwd: str | None
) -> Endpoint:
    """A server as an entry of an `mcpServers` file."""
    refuse_types("an MCP server", entry, ServerEntry)
    for key in entry.keys() - ServerEntry.__annotations__.keys():
        if hint := did_you_mean(str(key), ServerEntry.__annotations__):
            raise ConfigError(f"an MCP server has no {key!r}{hint}")
        _LOG.warning("an entry of an MCP server has %r, which has no meaning here", key)
    if ("command" in entry) == ("url" in entry):
        raise ConfigError(f"an MCP server has either 'command' or 'url'; found the keys {sorted(entry)}")
    if "url" in entry:
        if entry.get("type", "http") not in ("http", "streamable-http", "streamable_http", "streamableHttp"):
            raise ConfigError(f"type {entry['type']!r:.40}: only streamable HTTP is supported, type 'http'")
        return endpoint(entry["url"], {**(entry.get("headers") or {}), **(headers or {})}, env, cwd)
    words = [entry["command"], *(entry.get("args") or ())]
    return endpoint(words, headers, {**(entry.get("env") or {}), **(env or {})}, cwd or entry.get("cwd"))


def _address(url: str) -> Address:
    try:
        return Address.of(url)
    except ValueError as e:
        raise ConfigError(f"MCPTools: {e}") from None


def _checked(headers: dict[str, str]) -> dict[str, str]:
    """Headers that HTTP can carry; the error of the HTTP client would quote their values."""
    for name, value in headers.items():
        if not (name.isascii() and value.isascii() and (name + value).isprintable()):
            raise ConfigError(f"headers: {name!r:.60} contains a character that HTTP cannot carry")
    return headers


def _hides(name: str, value: str) -> bool:
    """Return True if no message may show the value of an environment variable."""
    return is_secret(name) or (_OPAQUE.match(value) is not None and not _DIRECTS.match(name))


def _said(name: str, value: str) -> str:
    """An environment variable as it may be seen."""
    return name if _hides(name, value) or not _DIRECTS.match(name) else f"{name}={shown_url(value)!r}"


def _spelled(secrets: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({s for s in secrets if len(s) >= MIN_SECRET}, key=len, reverse=True))


def _short(program: str) -> str:
    """A name of a package or a host, without what all of them have: `mcp-server-time` is `time`."""
    before = ""
    while program != before:
        before, program = program, _AFFIXES.sub("", program)
    return re.sub(r"\W+", "_", program).strip("_").lower()[:32] or "mcp"


def safe_words(error: BaseException | str, secrets: Sequence[str]) -> str:
    """An error in words that may be seen; of a group, its first cause."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    said = error if isinstance(error, str) else str(error) or type(error).__name__
    return str(without_secrets(said, secrets))[:2000]
