"""The addresses that a tool may reach: checks of URLs as a model writes them, and of a host's resolved addresses.

Knows URLs and IP addresses; sends nothing. A name is not judged, only the addresses that it resolves to: the spellings
of a loopback address are endless. Whoever connects must connect to the addresses that were judged, see
`agentkit_tools.network.pinned_transport`.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agentkit import ToolResult
from agentkit.errors import ConfigError, ErrorCode

if TYPE_CHECKING:
    from httpx2 import URL

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Finds the IP addresses of a host, as text."""

MAX_URL: Final = 8192  # characters: what common servers accept


class RequestFailed(Exception):
    """A request that was refused or failed, with the reason in words for the model.

    Args:
        message: what went wrong and what to do.
        code: the stable code of the error.
        status: the HTTP status, if there was an answer.
        retry: whether the same request may succeed later.
        wait: how many seconds the server asked to wait before that.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ErrorCode = "tool_error",
        status: int | None = None,
        retry: bool = False,
        wait: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.status = status
        self.retry = retry
        self.wait = wait

    @property
    def result(self) -> ToolResult:
        """The failure as a tool's answer."""
        return ToolResult(error=str(self), code=self.code)


def denial(message: str) -> RequestFailed:
    """Return the error for a request that must not be sent."""
    return RequestFailed(message, code="denied")


# URLs


def checked_url(text: str) -> URL:
    """Check a URL, read by the HTTP client's own parser, so that the checked URL is the requested one.

    Raises:
        RequestFailed: it is not an absolute http or https URL, or has parts with which programs are misled:
            credentials, backslashes, control characters, an escaped host.
    """
    import httpx2

    text = text.strip(" \t\r\n")
    for pattern, found in _MISLEADING.items():
        if re.search(pattern, text):
            raise denial(f"the URL {brief(text)} {found}")
    try:
        url = httpx2.URL(text[:MAX_URL])
    except (httpx2.InvalidURL, ValueError) as e:
        raise denial(f"{brief(text)} is not a URL: {e}") from e
    if url.scheme not in ("http", "https") or not url.host:
        raise denial(f"the URL {brief(text)} does not start with http:// or https:// and a host; write the whole URL")
    if url.userinfo:
        raise denial(f"the URL contains credentials: the part before @ is not the host, which is {url.host!r}")
    if "%" in url.host:
        raise denial(f"the host of the URL {brief(text)} contains %")
    if len(text) > MAX_URL:
        raise denial(f"the URL has {len(text)} characters; at most {MAX_URL} are sent")
    if url.port is not None and not 0 < url.port < 65536:
        raise denial(f"the port {url.port} of the URL is not between 1 and 65535")
    return url.copy_with(fragment=None)


_MISLEADING: Final = {
    r"[\x00-\x20\x7f-\xa0\u2028\u2029]": "contains a control character or a space; write it as %20",
    r"[\ud800-\udfff]": "contains a lone surrogate",
    r"\\": "contains a backslash, which programs read differently; write /",
}


def display_url(url: URL) -> str:
    """Return a URL as it is requested, with the letters of an international host after it.

    >>> import httpx2
    >>> display_url(httpx2.URL("https://bücher.example/a"))
    'https://xn--bcher-kva.example/a (bücher.example)'
    """
    host = url.host
    return str(url) if host.isascii() else f"{url} ({host})"


def brief(text: str) -> str:
    """The text, quoted, with its middle omitted if it is long."""
    return repr(text if len(text) <= 200 else f"{text[:150]}…{text[-40:]}")


# Addresses


class Guard:
    """Guards the hosts that may be reached: those with global addresses only, and those explicitly allowed.

    Refused are loopback, private, link-local, shared (100.64.0.0/10), multicast, reserved and documentation addresses,
    also inside an IPv6 address (IPv4-mapped, NAT64, 6to4, …), and the metadata services of clouds.

    Args:
        allow: IP addresses and networks that may be reached as well, such as `10.1.0.0/16` of an intranet.
        resolve: finds a host's addresses; by default the operating system's resolver.

    Raises:
        ConfigError: an item of `allow` is not an IP address or a network.
    """

    def __init__(self, allow: Collection[str] = (), resolve: Resolve | None = None) -> None:
        self._allow = tuple(_network(item) for item in _list_networks(allow))
        self._resolve = resolve or system_addresses

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the host's addresses if all of them may be reached.

        Raises:
            RequestFailed: the host has no address, or one that must not be reached.
        """
        try:
            found = await self._resolve(host, port)
        except socket.gaierror as e:
            again = e.errno == socket.EAI_AGAIN
            raise RequestFailed(f"the host {host!r} was not found: {e.strerror}", retry=again) from e
        except UnicodeError as e:
            raise denial(f"{brief(host)} is not a host's name: {e}") from e
        if not found:
            raise RequestFailed(f"the host {host!r} has no address")
        for text in found:
            why = self.why_refused(text)
            if why is not None:
                raise denial(f"the host {host!r} is not reachable from here: {why}")
        return found

    def why_refused(self, address: str) -> str | None:
        """Return why an address must not be reached; None if it may be.

        >>> Guard().why_refused("::ffff:127.0.0.1")
        '::ffff:127.0.0.1 stands for 127.0.0.1, which is a loopback address'
        >>> Guard(allow=["127.0.0.0/8"]).why_refused("127.0.0.1") is None
        True
        """
        try:
            written = ipaddress.ip_address(address)
        except ValueError:
            return f"{brief(address)} is not an IP address"
        judged = embedded_ipv4(written)
        if any(
            one in network for one in (written, judged) for network in self._allow if network.version == one.version
        ):
            return None
        kind = _kind(judged)
        if kind is None:
            return None
        return f"{written} is {kind}" if judged == written else f"{written} stands for {judged}, which is {kind}"


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """A host's addresses by the operating system's resolver.

    Raises:
        socket.gaierror: it has none.
    """
    import anyio

    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def embedded_ipv4(address: IPAddress) -> IPAddress:
    """Return the IPv4 address that packets to an IPv6 address are really sent to; any other address unchanged."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _LAST_32_BITS) and int(address) > 1:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


_LAST_32_BITS: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "::ffff:0:0/96",  # IPv4-mapped, RFC 4291 2.5.5.2
        "::/96",  # IPv4-compatible, RFC 4291 2.5.5.1
        "::ffff:0:0:0/96",  # IPv4-translated, RFC 2765
        "64:ff9b::/96",  # NAT64, RFC 6052
    )
)

_REFUSED: Final = {
    ipaddress.ip_network("168.63.129.16"): "the metadata service of a cloud",  # Azure's; a global address otherwise
    ipaddress.ip_network("192.0.0.0/24"): "reserved",  # Oracle's metadata is there; in parts global, says Python
    ipaddress.ip_network("192.88.99.0/24"): "a relay to 6to4 addresses",  # RFC 7526
    ipaddress.ip_network("64:ff9b:1::/48"): "a private NAT64 address",  # RFC 8215
    ipaddress.ip_network("2001::/32"): "a Teredo address",  # RFC 4380: stands for an IPv4 address, in disguise
    ipaddress.ip_network("100.64.0.0/10"): "shared by a provider's customers (100.64.0.0/10)",  # RFC 6598
}


def _kind(address: IPAddress) -> str | None:
    """Return the kind of an address; None for one that anybody in the internet can reach."""
    for network, kind in _REFUSED.items():
        if network.version == address.version and address in network:
            return kind
    kinds = {
        "the unspecified address": address.is_unspecified,
        "a loopback address": address.is_loopback,
        "a link-local address": address.is_link_local,
        "a multicast address": address.is_multicast,
        "reserved": address.is_reserved,
        "a private address": not address.is_global or getattr(address, "is_site_local", False),
    }
    return next((kind for kind, true in kinds.items() if true), None)


def _list_networks(allow: Collection[str]) -> Iterator[str]:
    if isinstance(allow, str):
        raise ConfigError(f"allow={allow!r}: expected a list of addresses, allow=[{allow!r}]")
    yield from allow


def _network(text: str) -> IPNetwork:
    try:
        return ipaddress.ip_network(text)
    except ValueError as e:
        raise ConfigError(f"allow=[{text!r}]: expected an IP address or a network such as '10.1.0.0/16': {e}") from e
