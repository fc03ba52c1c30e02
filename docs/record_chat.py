"""The first session in docs/terminal.md, recorded from the real command line in a real terminal.

python docs/record_chat.py          print the recording
python docs/record_chat.py --write  put it into the page

The model's responses were composed, in the wire format of OpenAI's chat completions, and come from a server on this
machine; everything else is real. Times are replaced, so that the recording is the same each time.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from recording import Recorder, main, response
from replay_server import Recorded, ReplayServer  # found by the import before it

PAGE = Path(__file__).parent / "terminal.md"
MODEL = "--model openai:composed --tools weather:forecast"
TOOL = '''\
def forecast(city: str, days: int = 1) -> list[dict]:
    """The weather of the next days."""
    return [{"day": n + 1, "sky": "clear", "degrees": 21 + n} for n in range(days)]
'''
THOUGHT = "The user wants to plan a trip. I should get the forecast for both days before I recommend anything."
PLAN = """\
## Two days in Bern

Both days stay **clear**, so go outside:

1. *Saturday*: the old town, and `Rosengarten` for the view
2. *Sunday*: along the Aare

| day | degrees |
|-----|--------:|
| Saturday | 21 |
| Sunday | 22 |

```python
warmest = max(forecast("Bern", 2), key=lambda day: day["degrees"])
```
"""


def thinking(text: str) -> bytes:
    """Thinking as the beginning of a response."""
    choice = {"index": 0, "delta": {"reasoning_content": text}, "finish_reason": None}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "composed", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


CALL = ("call_1", "forecast", {"city": "Bern", "days": 2})
BUSY = Recorded(b'{"error": {"message": "too many requests"}}', 429, {"retry-after": "0.2"})
RESPONSES: list[bytes | Recorded] = [
    thinking(THOUGHT) + response("", CALL, tokens=(131, 42)),
    response(PLAN, tokens=(248, 96)),
    BUSY,
    response("Yes, on both days.", tokens=(352, 6)),
    response("Bern: clear, 21 and 22 degrees.", tokens=(120, 9)),
    Recorded(b'{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}', 401),
]


def recording() -> str:
    """Play the session; returns the screen contents, with times replaced."""
    with TemporaryDirectory() as name, ReplayServer(RESPONSES) as server:
        folder = Path(name)
        (folder / "weather.py").write_text(TOOL)
        recorder = Recorder(folder, server.url)
        recorder.run(
            f"agentkit chat {MODEL}",
            ("you>", "Plan my weekend in Bern.\r"),
            ("you>", "/tools\r"),
            ("you>", "/modle openai:gpt-5\r"),
            ("you>", "Is it clear?\r"),
            ("you>", "\x04"),
        )
        recorder.run(
            f'echo "Bern, two days" | agentkit run "Sum up in one line:" - {MODEL} > answer.txt; cat answer.txt'
        )
        recorder.run(f'agentkit run "Weather in Bern?" {MODEL}; echo $?')
    return recorder.recording


if __name__ == "__main__":
    main(PAGE, "weather.py", TOOL, recording())
