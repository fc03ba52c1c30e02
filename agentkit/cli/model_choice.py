"""The options that select a model, and the model that they select: a provider's, or an object of a Python module.

Errors of `model(…)` name the command line's flags.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.spelling import did_you_mean, nearest
from agentkit.cli.flag_words import find_here, flag_of, in_flags, temperature, whole
from agentkit.cli.python_objects import load_model
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.formats import Format
    from agentkit.models import Model

_REFERENCE: Final = re.compile(r"([^\W\d]\w*)(?:\.[^\W\d]\w*)*:[^\W\d][\w.]*")
NATIVE: Final = "native"
"""As a format: native calls."""
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def add_model(command: argparse.ArgumentParser, *, repeated: bool = False) -> None:
    """Declare which model it is, where it is, and which key opens it.

    Args:
        command: the command.
        repeated: whether several models may be given; the value is then a list.
    """
    several: dict[str, Any] = {"action": "append", "default": []} if repeated else {}
    more = "; may be repeated, to choose from" if repeated else ""
    command.add_argument(
        "-m",
        "--model",
        metavar="NAME",
        help=f"such as openai:gpt-5, anthropic:…, gemini:…; or module:name, a model object of Python{more}",
        **several,
    )
    command.add_argument("--base-url", metavar="URL", help="of a compatible server, such as http://127.0.0.1:8000/v1")
    command.add_argument("--api-key-env", metavar="NAME", help="the environment variable with the key")


def add_format(command: argparse.ArgumentParser, default: str | None = None) -> None:
    """Declare how calls are written; without a default they are native."""
    command.add_argument(
        *("-f", "--format"),
        default=default,
        metavar="NAME",
        help=f"text format of the calls, such as xml, or {NATIVE}; default: {default or NATIVE}",
    )


def add_server(command: argparse.ArgumentParser) -> None:
    """Declare the kind of server."""
    from agentkit.models.servers import SERVERS

    command.add_argument("--server", choices=tuple(SERVERS), help="what kind of server is at --base-url")


def add_settings(command: argparse.ArgumentParser) -> None:
    """Declare how the model is asked."""
    add_server(command)
    command.add_argument(
        "--constrained", action="store_true", help="constrain the calls by a grammar; needs --format and --server"
    )
    command.add_argument("--max-tokens", type=whole, metavar="N", help="tokens of one response at most")
    command.add_argument("--temperature", type=temperature, metavar="T", help="0 or more; 0 is the most repeatable")
    command.add_argument("--max-turns", type=whole, metavar="N", help="responses to one message at most; default: 50")


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model that the options name.

    Args:
        model: a model string, or `module:name`.
        format: the text format of its calls; None for native ones.
        base_url: of a compatible server.
        server: its kind.
        constrained: whether the calls are constrained by a grammar.
        api_key_env: the environment variable with the key; None for the provider's own.
    """

    model: str
    format: str | Format | None = None
    base_url: str | None = None
    server: str | None = None
    constrained: bool = False
    api_key_env: str | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> ModelChoice:
        """The choice in these arguments."""
        given = {one.name: getattr(arguments, one.name) for one in fields(cls)}
        return cls(**{**given, "format": None if given["format"] == NATIVE else given["format"]})

    def create(self) -> Model:
        """The model.

        Raises:
            ConfigError: there is none of that name, options do not go together, or a key is missing.
            FormatError: no format has that name.
        """
        if is_reference(self.model):
            self._refuse_with_object()
            return load_model(self.model)
        from agentkit.models import model

        _refuse_wrong_string(self.model)
        key = None if self.api_key_env is None else key_in(self.api_key_env)
        try:
            return model(
                self.model,
                format=self.format,
                base_url=self.base_url,
                server=self.server,
                constrained=self.constrained,
                api_key=key,
            )
        except ConfigError as e:
            raise ConfigError(in_flags(str(e))) from e

    def with_model(self, model: str) -> ModelChoice:
        """Return the choice of another model; another provider's drops the server, an object all options."""
        if is_reference(model):
            return ModelChoice(model)
        if model.partition(":")[0] == self.model.partition(":")[0]:
            return replace(self, model=model)
        return ModelChoice(model, self.format)

    def with_format(self, format: str | None) -> ModelChoice:
        """Return the choice with another format of the calls; None for native ones."""
        return replace(self, format=format, constrained=self.constrained and format is not None)

    def _refuse_with_object(self) -> None:
        given = [
            flag_of(one.name) for one in fields(self) if one.name != "model" and getattr(self, one.name) != one.default
        ]
        if given:
            raise ConfigError(
                f"--model {self.model} is an object, which was made with its own format and server: leave "
                f"{' and '.join(given)} out, or write --model openai:NAME"
            )


def is_reference(name: str) -> bool:
    """Say if the value of `--model` is `module:name`, and not a model string, even one with a typo."""
    from agentkit.foreign import provider_hints as hints
    from agentkit.models.model_strings import PROVIDERS

    found = _REFERENCE.fullmatch(name)
    prefix = name.partition(":")[0]
    if found is None or prefix in (*PROVIDERS, *hints.PROVIDERS, *hints.SERVERS, *hints.ROUTERS):
        return False
    find_here(name)
    return find_spec(found[1]) is not None or nearest(prefix, PROVIDERS) is None


@contextmanager
def model_log(level: int, keep: Callable[[logging.LogRecord], bool] = bool) -> Iterator[None]:
    """Log the models' records from this level on, of these only those for which `keep` returns True."""
    log = logging.getLogger("agentkit.models")
    before = log.level
    log.setLevel(level)
    log.addFilter(keep)
    try:
        yield
    finally:
        log.removeFilter(keep)
        log.setLevel(before)


def load_sdks(*models: Model) -> None:
    """Load the SDKs of models, which takes a second or two; if one is missing, a request says how to install it."""
    for model in models:
        vendor = getattr(getattr(model, "inner", model), "vendor", None)
        if vendor is not None:
            with suppress(ModuleNotFoundError):
                import_module(vendor.sdk)


def key_in(variable: str) -> str:
    """The key in an environment variable.

    Raises:
        ConfigError: there is none. The message never quotes a text that may be a key.
    """
    if not _VARIABLE.fullmatch(variable):
        raise ConfigError(
            "--api-key-env: expected the name of an environment variable, found something else; a key itself does not "
            "belong on a command line, where others can read it"
        )
    if not (key := os.environ.get(variable, "").strip()):
        hint = did_you_mean(variable, [name for name, value in os.environ.items() if value and name != variable])
        raise ConfigError(f"--api-key-env: the environment variable {variable} is not set{hint}")
    return key


def _refuse_wrong_string(name: str) -> None:
    from agentkit.checks.keys import shown_url
    from agentkit.foreign.provider_hints import model_hint
    from agentkit.models.model_strings import PROVIDERS

    prefix, _, id = name.partition(":")
    if prefix in PROVIDERS and id and id == id.strip():
        return
    wanted = ", ".join(f"{p}:NAME" for p in PROVIDERS)
    raise ConfigError(
        f"--model {shown_url(name)!r}: expected {wanted}, or module:name for a model object of Python"
        f"{model_hint(name, PROVIDERS, shell=True)}"
    )
