"""What the pages on the gateway list is what there is: settings, options, codes, metrics, fields of the log."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from gateway_kit import gateway
from text_calling_server import text_calling_server

from agentkit.cli import serve
from agentkit.gateway import gateway_config
from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.gateway_config import GatewayConfig, GatewayLimits, GatewayTimeouts, UpstreamSettings, config_of
from agentkit.gateway.gateway_metrics import GatewayMetrics

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "agentkit" / "gateway"


def text(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def rows(page: str, title: str) -> list[list[str]]:
    """The rows of the first table below a heading, as cells."""
    below = text(page).split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in below.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.DOTALL | re.MULTILINE)


def settings() -> Iterator[tuple[str, Any]]:
    """Each setting, as the page names it, with its default."""
    model = getattr(gateway_config, "GatewayModel", None) or gateway_config.ModelSettings
    parts = {"upstreams.NAME.": UpstreamSettings, "models.NAME.": model, "limits.": GatewayLimits}
    for prefix, part in {**parts, "timeouts.": GatewayTimeouts, "": GatewayConfig}.items():
        for field in dataclasses.fields(part):
            if field.name not in ("name", "upstreams", "models", "limits", "timeouts"):
                yield f"{prefix}{'keys.CLIENT' if field.name == 'keys' else field.name}", field.default


def options() -> dict[str, argparse.Action]:
    """The options of `agentkit serve`."""
    commands = argparse.ArgumentParser().add_subparsers()
    serve.add(commands)
    return {name: action for name, action in commands.choices["serve"]._option_string_actions.items() if name[1] == "-"}


def test_every_setting_has_its_row_and_its_default() -> None:
    table = {words(row[0])[0]: row for row in rows("gateway_settings", "All settings")}
    assert sorted(table) == sorted(name for name, _ in settings())
    for name, default in settings():
        shown = words(table[name][2])
        if type(default) in (str, int, float, bool) and name != "models.NAME.upstream":
            assert [yaml.safe_load(f"[{shown[0]}]")[0] if shown != ["-"] else "-"] == [default], name
        else:
            assert shown == [], name


def test_every_option_is_on_a_page_and_exists() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("gateway*.md")))
    known = options().keys() - {"--help"}
    assert sorted(name for name in known if not re.search(rf"{name}\b(?!-)", pages)) == []
    listed = [row[1] for row in rows("gateway_settings", "All settings")]
    assert [word for cell in listed for word in words(cell) if word.split()[0] not in known] == []


def test_the_file_on_the_page_is_valid() -> None:
    (example,) = blocks("gateway_settings", "yaml")
    config = config_of(yaml.safe_load(example), str)
    assert (config.models["qwen3"].model, config.models["*"].upstream) == ("Qwen/Qwen3-8B", "claude")


def test_every_metric_has_its_row_with_its_labels() -> None:
    metrics = GatewayMetrics()
    found = {
        metric._head.split()[2]: list(getattr(metric, "_labels", ()))
        for metric in vars(metrics).values()
        if hasattr(metric, "_head")
    }
    assert {words(row[0])[0]: words(row[1]) for row in rows("gateway_settings", "Metrics")} == found


def test_long_names_of_models_are_not_kept() -> None:
    metrics = GatewayMetrics()
    metrics.count("m" * 1_000, "chat", 200, 0.1, None, False, ReplyRecord())
    assert 'gen_ai_request_model="other"' in metrics.text()
    assert "mmm" not in metrics.text()


def test_every_field_of_the_log_has_its_row() -> None:
    calls = ast.walk(ast.parse((SOURCE / "gateway_app.py").read_text(encoding="utf-8")))
    (written,) = (
        {keyword.arg for keyword in call.keywords}
        for call in calls
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("_log.write")
    )
    assert {word for row in rows("gateway_settings", "Access log") for word in words(row[0])} == written | {"time"}
    assert {"recovered", "repairs", "asked_again"} < {field.name for field in dataclasses.fields(ReplyRecord)}


def test_every_code_of_an_error_has_its_row() -> None:
    table = {code for row in rows("gateway", "If something fails") for code in words(row[0])}
    assert sorted(raised_codes() - table) == []
    assert sorted(table - raised_codes() - {"unread_call", "invented_result"}) == []  # words of `agentkit.agent.again`


def raised_codes() -> set[str]:
    """The codes in the source that refuses requests."""
    found = set()
    for path in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) == 3:
                name, code = ast.unparse(node.func).rpartition(".")[2], node.args[2]
                if name in ("RequestRefused", "_refusal"):
                    found |= {word.value for word in ast.walk(code) if isinstance(word, ast.Constant)}
        found |= set(re.findall(r'^[A-Z]+: Final = "(invalid_request|unsupported)"$', path.read_text(), re.MULTILINE))
    return {code for code in found if isinstance(code, str)} | {"failed_call"}


@contextmanager
def page_server() -> Iterator[str]:
    """The URL of a gateway in front of a model that calls in its text."""
    with text_calling_server() as url, gateway({"upstreams": {"local": {"url": url}}}) as address:
        yield address


@pytest.mark.parametrize("page", ["gateway", pytest.param("gateway_clients", marks=pytest.mark.soak)])
def test_the_programs_of_a_page_print_what_it_shows(page: str) -> None:
    """A process of their own: the clients keep connections. Importing all of them takes seconds."""
    with page_server() as address:
        urls = {"OPENAI_BASE_URL": f"{address}/v1", "ANTHROPIC_BASE_URL": address, "NO_PROXY": "*", "no_proxy": "*"}
        environment = {**os.environ, **urls, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
        program = [sys.executable, "-c", "".join(blocks(page, "python"))]
        ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert (ran.stdout, ran.stderr) == ("".join(blocks(page, 'text title="output"')), "")


def test_curl_on_the_page_gets_a_native_call() -> None:
    (block,) = (block for block in blocks("gateway_clients", "sh") if block.startswith("curl "))
    with page_server() as address:
        command = shlex.split(block.replace("\\\n", "").replace("http://127.0.0.1:4000", address))
        ran = subprocess.run([*command, "-s", "--noproxy", "*"], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "weather"
