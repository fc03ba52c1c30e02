"""Which URLs and addresses a tool reaches, and which not: rows 22 to 26 and 28 of the hostile inputs."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raw_server import raw_server
from site_server import Page, SiteServer

from agentkit.errors import ConfigError
from agentkit_tools.network.addresses import Guard, RequestFailed, checked_url, display_url, embedded_ipv4
from agentkit_tools.network.http_client import HttpClient, Response


def fetched(url: str, guard: Guard, **options: object) -> Response:
    client = HttpClient(guard=guard, redirects=5, retries=0, **options)  # type: ignore[arg-type]
    return asyncio.run(client.request("GET", url))


def refusal(url: str, guard: Guard | None = None) -> str:
    with pytest.raises(RequestFailed) as caught:
        fetched(url, guard or Guard())
    assert caught.value.code == "denied"
    return str(caught.value)


def names(**addresses: str | list[str]) -> Guard:
    """A guard whose resolver knows these names: an address, or the addresses of the first, second, … question."""
    asked: dict[str, int] = {}

    async def resolve(host: str, port: int) -> Sequence[str]:
        answers = addresses[host.partition(".")[0]]
        if isinstance(answers, str):
            return [answers]
        asked[host] = asked.get(host, 0) + 1
        return [answers[min(asked[host], len(answers)) - 1]]

    return Guard(resolve=resolve)


LOOPBACK = ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "017700000001", "0", "localhost", "[::1]"]


@pytest.mark.parametrize("host", [*LOOPBACK, "①②⑦.⓪.⓪.①", "[::]", "[::ffff:7f00:1]"])
def test_row_22_no_spelling_of_loopback_is_reached(host: str) -> None:
    with SiteServer({"/": Page(b"secret")}) as site:
        refusal(f"http://{host}:{site.port}/")
    assert site.visits == []


def test_row_22_the_reason_names_the_address() -> None:
    assert refusal("http://2130706433/") == (
        "the host '2130706433' is not reachable from here: 127.0.0.1 is a loopback address"
    )


@pytest.mark.parametrize(
    "address",
    [
        *("::1", "::ffff:127.0.0.1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "169.254.169.254", "100.100.100.200"),
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "0.0.0.0", "255.255.255.255", "198.18.0.1"),
        *("192.0.0.192", "168.63.129.16", "240.0.0.1", "203.0.113.7", "2001:db8::1", "fec0::1", "::"),
    ],
)
def test_row_23_an_address_that_is_not_global_is_refused(address: str) -> None:
    assert Guard().why_refused(address) is not None


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("64:ff9b::a9fe:a9fe", "stands for 169.254.169.254, which is a link-local address"),
        ("2002:7f00:1::", "stands for 127.0.0.1, which is a loopback address"),
        ("2002:a9fe:a9fe::1", "stands for 169.254.169.254, which is a link-local address"),
        ("::ffff:0:7f00:1", "stands for 127.0.0.1, which is a loopback address"),
        ("::a00:1", "stands for 10.0.0.1, which is a private address"),
        ("224.0.0.1", "is a multicast address"),
        ("ff02::1", "is a multicast address"),
        ("64:ff9b:1::a9fe:a9fe", "is a private NAT64 address"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "is a Teredo address"),
        ("192.88.99.1", "is a relay to 6to4 addresses"),
    ],
)
def test_row_24_an_address_inside_an_address_is_decoded(address: str, why: str) -> None:
    assert str(Guard().why_refused(address)).endswith(why)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07::1", "64:ff9b::5db8:d70e", "::ffff:8.8.8.8"])
def test_a_global_address_may_be_reached(address: str) -> None:
    assert Guard().why_refused(address) is None


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_all_its_disguises(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    disguises = (0xFFFF << 32, 0x64FF9B << 96, 0xFFFF << 48)
    spelled = [str(ipaddress.IPv6Address(prefix | number)) for prefix in disguises]
    spelled.append(str(ipaddress.IPv6Address(0x2002 << 112 | number << 80)))
    assert {Guard().why_refused(one) is None for one in spelled} == {Guard().why_refused(str(address)) is None}


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_reached(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    stands_for_itself = embedded_ipv4(address) == address  # Python 3.13: 6to4 of a public IPv4 address is private
    if stands_for_itself and (not address.is_global or address.is_multicast):
        assert Guard().why_refused(str(address)) is not None


def test_a_host_with_one_bad_address_is_refused() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14", "10.0.0.1"]

    assert "10.0.0.1 is a private address" in refusal("http://both.example/", Guard(resolve=resolve))


def test_row_25_the_address_that_was_judged_is_the_one_connected_to() -> None:
    """The name's second answer would be loopback, where something listens; it is never asked for."""
    asked = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.2" if len(asked) == 1 else "127.0.0.1"]

    guard = Guard(allow=["127.0.0.2"], resolve=resolve)
    with SiteServer({"/": Page(b"allowed")}, host="127.0.0.2") as site:
        answer = fetched(f"http://rebinding.example:{site.port}/", guard)
    assert (answer.body, asked) == (b"allowed", ["rebinding.example"])
    assert site.visits[0].headers["host"] == f"rebinding.example:{site.port}"


def test_row_25_every_connection_is_judged_anew() -> None:
    guard = names(rebinding=["93.184.215.14", "169.254.169.254"])
    assert asyncio.run(guard.addresses("rebinding.example", 80)) == ["93.184.215.14"]
    assert "link-local" in refusal("http://rebinding.example/", guard)


def test_row_25_tls_keeps_the_name(tmp_path: Path) -> None:
    """The server's name is sent and its certificate is checked for it, though the connection is to an address."""
    certificate, key = self_signed(tmp_path, "shop.example")
    trusting = ssl.create_default_context(cafile=str(certificate))

    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    guard = Guard(allow=["127.0.0.1"], resolve=resolve)
    with SiteServer({"/": Page(b"hello")}) as site:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        asked: list[str | None] = []
        context.sni_callback = lambda _, name, __: asked.append(name)
        site._server.socket = context.wrap_socket(site._server.socket, server_side=True)
        address = f"https://shop.example:{site.port}/"
        assert fetched(address, guard, ssl_context=trusting).body == b"hello"
        with pytest.raises(RequestFailed, match="certificate"):
            fetched(address.replace("shop", "other"), guard, ssl_context=trusting)
    assert asked == ["shop.example", "other.example"]
    assert site.visits[0].headers["host"] == f"shop.example:{site.port}"


def self_signed(folder: Path, name: str) -> tuple[Path, Path]:
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    try:
        subprocess.run(
            [
                *made,
                "-keyout",
                key,
                "-out",
                certificate,
                "-subj",
                f"/CN={name}",
                "-addext",
                f"subjectAltName=DNS:{name}",
            ],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("openssl is not installed: it makes the certificate")
    return certificate, key


LOCAL = Guard(allow=["127.0.0.1"])


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254 is a link-local address"),
        ("//[::1]/", "::1 is a loopback address"),
        ("file:///etc/passwd", "does not start with http:// or https://"),
        ("gopher://127.0.0.1/", "does not start with http:// or https://"),
        ("javascript:alert(1)", "does not start with http:// or https://"),
        ("http://user:password@example.org/", "the URL contains credentials"),
        ("/\\evil.example/", "contains a backslash"),
        ("//evil\\@127.0.0.1/", "contains a backslash"),
    ],
)
def test_row_26_a_redirect_is_judged_like_the_first_url(target: str, why: str) -> None:
    with SiteServer({"/": Page(status=302, headers={"Location": target})}) as site:
        assert why in refusal(site.url, LOCAL)
    assert len(site.visits) == 1


def test_row_26_at_most_five_redirects() -> None:
    site_map = {f"/{n}": Page(status=302, headers={"Location": f"/{n + 1}"}) for n in range(50)}
    with (
        SiteServer(site_map) as site,
        pytest.raises(RequestFailed, match=r"^more than 5 redirects; the last one leads"),
    ):
        fetched(f"{site.url}/0", LOCAL)
    assert len(site.visits) == 6


def test_row_26_five_redirects_are_followed() -> None:
    site_map = {f"/{n}": Page(status=302, headers={"Location": f"/{n + 1}"}) for n in range(5)}
    with SiteServer(site_map | {"/5": Page(b"there")}) as site:
        answer = fetched(f"{site.url}/0", LOCAL)
    assert (answer.body, answer.url) == (b"there", f"{site.url}/5")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://good.example@evil.example/", "the part before @ is not the host, which is 'evil.example'"),
        ("http://user:secret@example.org/", "contains credentials"),
        ("http://good.example\\@evil.example/", "contains a backslash"),
        ("http://example.org\\.evil.example/", "contains a backslash"),
        ("http://example.org/\r\nHost: evil", "contains a control character or a space"),
        ("http://example.org/a b", "contains a control character or a space"),
        ("http://exa\x00mple.org/", "contains a control character"),
        ("http://example.org/\u2028", "contains a control character"),
        ("http://example.org/\ud800", "contains a lone surrogate"),
        ("http://127.0.0.%31/", "contains %"),
        ("http://[fe80::1%25eth0]/", "contains %"),
        ("http://\u202eexample.org/", "is not a URL"),
        ("file:///etc/passwd", "does not start with http:// or https://"),
        ("data:text/html,hello", "does not start with http:// or https://"),
        ("example.org", "does not start with http:// or https:// and a host; write the whole URL"),
        ("http:///path", "does not start with http:// or https:// and a host"),
        ("http://example.org:0/", "the port 0"),
        ("http://example.org:99999/", "the port 99999"),
        ("http://example.org:80x/", "is not a URL"),
        ("http://example.org/" + "a" * 9000, "has 9019 characters; at most 8192"),
        ("http://[::1/", "is not a URL"),
        ("", "does not start with http:// or https://"),
    ],
)
def test_row_28_a_misleading_url_is_refused(url: str, why: str) -> None:
    message = refusal(url)
    assert why in message
    assert "secret" not in message
    assert len(message) < 400


def test_row_28_an_international_host_is_shown_in_both_spellings() -> None:
    assert (
        display_url(checked_url("http://\u0430pple.com/")) == "http://xn--pple-43d.com/ (\u0430pple.com)"
    )  # a Cyrillic a
    assert display_url(checked_url("HTTPS://Example.COM/a/../b#c")) == "https://example.com/b"


@given(st.text(max_size=40))
def test_any_text_is_a_checked_url_or_refused(text: str) -> None:
    try:
        url = checked_url(f"http://{text}")
    except RequestFailed as e:
        refused = e
    else:
        refused = None
        assert checked_url(str(url)) == url
        assert str(url).isascii()
        assert not url.userinfo
    assert refused is None or refused.code == "denied"


def test_what_is_allowed_is_reached_and_nothing_else() -> None:
    with SiteServer({"/": Page(b"intranet")}) as site:
        assert fetched(site.url, Guard(allow=["127.0.0.0/8"])).body == b"intranet"
        assert fetched(f"http://[::ffff:7f00:1]:{site.port}", Guard(allow=["127.0.0.1"])).body == b"intranet"
        refusal(site.url, Guard(allow=["10.0.0.0/8", "::1"]))


@pytest.mark.parametrize("allow", [["localhost"], ["10.0.0.1/8"], "10.0.0.0/8"])
def test_what_is_allowed_must_be_addresses(allow: list[str]) -> None:
    with pytest.raises(ConfigError, match="allow="):
        Guard(allow=allow)


def test_a_name_that_does_not_exist_is_said_so() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(RequestFailed, match=r"^the host 'no.example' was not found: Name or service not known$"):
        fetched("http://no.example/", Guard(resolve=resolve))


def test_the_second_address_is_used_if_the_first_refuses() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.3", "127.0.0.1"]

    async def main() -> bytes:
        async with raw_server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") as url:
            client = HttpClient(guard=Guard(allow=["127.0.0.0/8"], resolve=resolve), retries=0)
            return (await client.request("GET", url.replace("127.0.0.1", "two.example"))).body

    assert asyncio.run(main()) == b"ok"
