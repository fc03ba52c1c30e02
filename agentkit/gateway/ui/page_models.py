"""The models that a person can choose for a thread, and the agent with the chosen one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from agentkit import formats
from agentkit.agent import Agent, Hook
from agentkit.errors import ConfigError
from agentkit.gateway.ui.thread_settings import ThreadSettings
from agentkit.models.base import Model, close

NATIVE: Final = "native"
"""As a format: native calls."""


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model that a person can choose.

    Args:
        name: its name, such as `openai:gpt-5`.
        label: how the page shows it.
        create: returns the model; its argument is the text format of its calls, None for native ones.
        format: the only format that it can be created with; empty if there are others.
    """

    name: str
    label: str
    create: Callable[[str | None], Model]
    format: str = ""


class PageModels:
    """The models of a page's threads, each created once.

    Args:
        agent: answers with its own model, unless a thread says otherwise.
        choices: the other models, and the agent's own with another format.
    """

    def __init__(self, agent: Agent, choices: Sequence[ModelOption]) -> None:
        self.agent = agent
        self._choices = {choice.name: choice for choice in choices}
        self._created: dict[tuple[str, str], Model] = {}

    @property
    def own(self) -> tuple[str, str]:
        """The name of the agent's own model, and its format."""
        return self.agent.model.name, format_of(self.agent.model)

    def choice_of(self, settings: ThreadSettings) -> tuple[str, str]:
        """The name of a thread's model, and its format: the chosen one, if the model can have it."""
        own, format = self.own
        name = settings.model or own
        return name, self._only_format(name) or settings.format or format

    def _only_format(self, name: str) -> str:
        """The only format of a model; empty if there are others, or no such model."""
        own, format = self.own
        return self._choices[name].format if name in self._choices else format if name == own else ""

    def to_json(self) -> dict[str, Any]:
        """The choices, and what is chosen for a new thread."""
        name, format = self.own
        labels = {name: name} | {choice.name: choice.label for choice in self._choices.values()}
        known = [NATIVE, *(one.name for one in formats.CATALOG)]
        only = {model: self._only_format(model) for model in labels}
        choices = [
            {"model": model, "label": label, **({"formats": [only[model]]} if only[model] else {})}
            for model, label in labels.items()
        ]
        return {"choices": choices, "formats": known, "model": name, "format": format}

    def check(self, settings: ThreadSettings) -> None:
        """Refuse an unknown choice.

        Raises:
            ConfigError: there is no such model or format.
        """
        name, format = chosen = self.choice_of(settings)
        if chosen == self.own:
            return
        if name not in self._choices:
            known = ", ".join(self._choices) or "only the agent's own"
            raise ConfigError(f"there is no model {name[:100]!r} to choose; there are {known}")
        if format != NATIVE:
            formats.get(format)

    def agent_for(self, settings: ThreadSettings, hooks: Sequence[Hook]) -> Agent:
        """The agent with a thread's model.

        Raises:
            ConfigError: there is no such model, or it cannot be created.
        """
        self.check(settings)
        chosen = self.choice_of(settings)
        if chosen == self.own:
            return self.agent.adapt(hooks=hooks)
        if chosen not in self._created:
            name, format = chosen
            self._created[chosen] = self._choices[name].create(None if format == NATIVE else format)
        config = replace(self.agent.config, formats=None)
        return self.agent.adapt(model=self._created[chosen], config=config, hooks=hooks)

    async def aclose(self) -> None:
        """Close the models that were created."""
        for model in self._created.values():
            await close(model)


def format_of(model: Model) -> str:
    """Return the name of a model's format, `native` for native calls."""
    format: Any = model.format
    return NATIVE if format is None else str(getattr(format, "name", format))
