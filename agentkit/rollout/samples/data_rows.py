"""One row of a data set as a sample: the columns of verl and of open-instruct.

| column | becomes |
|---|---|
| `prompt`, `messages` | the prompt: messages in OpenAI's form, a string, or JSON text of either |
| `images` | the images of the prompt, in place of its `<image>` marks |
| `extra_info.tools_kwargs`, `.need_tools_kwargs` | `tools_kwargs` |
| `env_config.env_configs` | `tools_kwargs`: of `create`, by `env_name` |
| `extra_info.tool_selection`, `tools` | `tool_selection` |
| `reward_model.ground_truth`, `ground_truth` | `ground_truth` |
| all else | `extra` |

Knows no file. A parquet file unites the keys of all its rows' structs: a key that a row does not have is read as
None, and is left out again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentkit.agent.prompts import messages_from
from agentkit.checks.spelling import did_you_mean, then
from agentkit.errors import ConfigError, show_value
from agentkit.messages import AssistantMessage, ImagePart, Message, TextPart, UserMessage, UserPart
from agentkit.rollout.samples.pictures import image_part
from agentkit.rollout.samples.sample import PHASES, Sample, ToolKwargs
from agentkit.tool.output import plain

_PHASES: Final[Mapping[str, str]] = {f"{phase}_kwargs": phase for phase in PHASES}
_MARK: Final = re.compile(r"(<image>)")


def sample_from(
    row: Mapping[str, Any], id: str, where: str, *, nulls: bool = True, folder: Path | None = None
) -> Sample:
    """One row as a sample.

    Args:
        row: its columns.
        id: its id, unless it has a column `id`.
        where: file and row, for messages.
        nulls: whether None in a struct is a value; False for rows of a parquet file, where it is an absent key.
        folder: where relative paths of images begin.

    Raises:
        ConfigError: a column is wrong; names the key.
    """
    given = _Row({key: _cleaned(value, nulls) for key, value in row.items()}, where)
    extra_info = given.mapping("extra_info")
    prompt, rest = _prompt(given, folder)
    kwargs = _tools_kwargs(extra_info, given)
    for name, create in _environments(given).items():
        kwargs[name] = ToolKwargs(create=create) if name not in kwargs else kwargs[name]
    selection = _selection(extra_info, given)
    reward_model = given.mapping("reward_model")
    truth = reward_model.take("ground_truth", given.take("ground_truth", None))
    own = given.take("id", None)
    left = {**given.left(), **rest}
    for name, nested in (("extra_info", extra_info), ("reward_model", reward_model)):
        if nested.left():
            left[name] = nested.left()
    return Sample(
        id=id if own is None else str(own),
        prompt=tuple(prompt),
        tools_kwargs=kwargs,
        tool_selection=selection,
        ground_truth=truth,
        extra=plain(left),
    )


class _Row:
    """The keys of a mapping; those that were taken are known."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._values = values
        self._taken: set[str] = set()

    def take(self, key: str, default: Any) -> Any:
        """A value; the default if the key is absent or None."""
        self._taken.add(key)
        value = self._values.get(key)
        return default if value is None else value

    def mapping(self, key: str) -> _Row:
        """A mapping inside, or one as JSON text; an empty one if it is absent."""
        where = f"{self.where}: {key}"
        return _Row(_object(self.take(key, {}), where), where)

    def keep(self, key: str) -> None:
        """Leave a key among those that were not taken."""
        self._taken.discard(key)

    def left(self) -> dict[str, Any]:
        """Return the keys that were not taken, with their values."""
        return {key: value for key, value in self._values.items() if key not in self._taken}


def from_json(value: Any, where: str) -> Any:
    """A value that may have been stored as JSON text, as it must be where its type differs from row to row."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"{where}: expected an object or its JSON text: {e}; found {value!r:.60}") from e


def _object(value: Any, where: str) -> Mapping[str, Any]:
    found = from_json(value, where)
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        raise ConfigError(f"{where}: expected an object, found {show_value(found)}")
    return found


def _cleaned(value: Any, nulls: bool) -> Any:
    """A value of Python's own types, without the absent keys of structs."""
    if isinstance(value, Mapping):
        return {key: _cleaned(inner, nulls) for key, inner in value.items() if nulls or inner is not None}
    if isinstance(value, list | tuple):
        return [_cleaned(inner, nulls) for inner in value]
    if hasattr(value, "tolist") and not isinstance(value, bytes | bytearray | memoryview):  # numpy's
        return _cleaned(value.tolist(), nulls)
    return value


def _prompt(row: _Row, folder: Path | None) -> tuple[list[Message], dict[str, Any]]:
    """The prompt with its images; and what followed it in `messages`, which is the answer to be learned."""
    key = "prompt" if row.take("prompt", None) is not None else "messages"
    found = row.take(key, None)
    where = f"{row.where}: {key}"
    if found is None:
        raise ConfigError(
            f"{row.where}: prompt: expected messages, found none; its columns are {', '.join(row.left())}"
        )
    if isinstance(found, str) and found.lstrip()[:2] in ("[{", "[ "):
        found = from_json(found, where)
    try:
        messages = messages_from(found)
    except (ConfigError, ValueError) as e:
        raise ConfigError(f"{where}: {e}") from e
    if not messages:
        raise ConfigError(f"{where}: expected at least one message, found none")
    rest: dict[str, Any] = {}
    if key == "messages" and isinstance(messages[-1], AssistantMessage) and len(messages) > 1:
        rest = {"answer": "".join(one.text for one in messages[-1:] if isinstance(one, AssistantMessage))}
        messages.pop()
    if videos := row.take("videos", None):
        raise ConfigError(
            f"{row.where}: videos: found {len(videos)}; only text and images are read: store frames as images"
        )
    return _with_images(messages, _images(row.take("images", []), row.where, folder), row.where), rest


def _images(found: Any, where: str, folder: Path | None) -> list[ImagePart]:
    several = found if isinstance(found, list) else [found]
    return [image_part(_located(one, folder), f"{where}: images[{at}]") for at, one in enumerate(several)]


def _located(image: Any, folder: Path | None) -> Any:
    """An image whose relative path begins where its file is."""
    if isinstance(image, Mapping) and image.get("bytes") is None and isinstance(image.get("path"), str):
        image = image["path"]
    if isinstance(image, str) and folder is not None and "://" not in image and not image.startswith("data:"):
        return str(folder / image)  # an absolute path stays itself
    return image


def _with_images(messages: list[Message], images: list[ImagePart], where: str) -> list[Message]:
    """The messages with each `<image>` replaced by the next image; without any such mark, before the last user's text.

    Source: verl's `RLHFDataset`, for the marks.
    """
    marks = sum(part.text.count("<image>") for one in messages if isinstance(one, UserMessage) for part in _texts(one))
    if not images:
        return messages  # without images the mark is a word like any other
    if marks and marks != len(images):
        raise ConfigError(f"{where}: images: {len(images)} for {marks} <image> marks in the prompt")
    last = max((at for at, one in enumerate(messages) if isinstance(one, UserMessage)), default=None)
    if last is None:
        raise ConfigError(f"{where}: images: the prompt has no user message for {len(images)} images")
    if not marks:
        before = messages[last]
        assert isinstance(before, UserMessage)
        return [*messages[:last], UserMessage((*images, *before.content)), *messages[last + 1 :]]
    supply = iter(images)
    return [_marked(one, supply) if isinstance(one, UserMessage) else one for one in messages]


def _texts(message: UserMessage) -> list[TextPart]:
    return [part for part in message.content if isinstance(part, TextPart)]


def _marked(message: UserMessage, supply: Any) -> UserMessage:
    parts: list[UserPart] = []
    for part in message.content:
        if not isinstance(part, TextPart):
            parts.append(part)
            continue
        pieces = [piece for piece in _MARK.split(part.text) if piece]
        parts += [next(supply) if piece == "<image>" else TextPart(piece) for piece in pieces]
    return UserMessage(tuple(parts))


def _tools_kwargs(extra_info: _Row, row: _Row) -> dict[str, ToolKwargs]:
    owner = extra_info if extra_info.take("tools_kwargs", None) is not None else row
    found = owner.mapping("tools_kwargs")
    needed = extra_info.take("need_tools_kwargs", row.take("need_tools_kwargs", False))
    if not isinstance(needed, bool):
        raise ConfigError(f"{extra_info.where}.need_tools_kwargs: expected true or false, found {show_value(needed)}")
    tools = found.left()
    if needed and not tools:
        raise ConfigError(f"{extra_info.where}.tools_kwargs: need_tools_kwargs is true, but there are none")
    return {name: _kwargs(entry, f"{found.where}.{name}") for name, entry in tools.items() if entry is not None}


def _kwargs(found: Any, where: str) -> ToolKwargs:
    phases: dict[str, Mapping[str, Any]] = {}
    for key, value in _object(found, where).items():
        if key not in _PHASES:
            hint = then(did_you_mean(key, _PHASES), f"it has {', '.join(_PHASES)}")
            raise ConfigError(f"{where}: unknown key {key!r:.60}{hint}")
        phases[_PHASES[key]] = _object({} if value is None else value, f"{where}.{key}")
    return ToolKwargs(**phases)


def _environments(row: _Row) -> dict[str, Mapping[str, Any]]:
    """Return the arguments of each environment's `create`: those of `reset` in open-instruct's `env_config`."""
    found = row.mapping("env_config").left()
    entries = found.get("env_configs") or ([found] if "env_name" in found else [])
    made: dict[str, Mapping[str, Any]] = {}
    for at, one in enumerate(entries):
        where = f"{row.where}: env_config.env_configs[{at}]"
        if not isinstance(one, Mapping) or not isinstance(one.get("env_name"), str):
            raise ConfigError(f"{where}.env_name: expected the name of an environment, found {show_value(one)}")
        made[one["env_name"]] = {
            key: value for key, value in one.items() if key not in ("env_name", "is_text_env", "max_steps")
        }
    row.keep("env_config")
    return made


def _selection(extra_info: _Row, row: _Row) -> tuple[str, ...] | None:
    """The tools that the model may call; None for all."""
    own = extra_info.take("tool_selection", row.take("tool_selection", None))
    tools = row.take("tools", None)
    if own is not None and tools is not None:
        raise ConfigError(f"{row.where}: both tool_selection and tools say which tools it may call; remove one")
    key = "tools" if own is None else "tool_selection"
    found = tools if own is None else own
    if isinstance(found, str):
        found = from_json(found, f"{row.where}: {key}") if found.lstrip().startswith("[") else [found]
    if found is None:
        return None
    names = [_function_name(one) for one in found] if isinstance(found, list) else [None]
    chosen = tuple(name for name in names if isinstance(name, str))
    if len(chosen) < len(names):
        raise ConfigError(f"{row.where}: {key}: expected a list of function names, found {show_value(found)}")
    return chosen


def _function_name(found: Any) -> Any:
    """The name in a declaration of OpenAI's form; a name itself."""
    if not isinstance(found, Mapping):
        return found
    function = found.get("function", found)
    return function.get("name") if isinstance(function, Mapping) else None
