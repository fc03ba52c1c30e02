"""What a compaction takes out of a conversation, and what it never does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.errors import ConfigError
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models.tokens import messages_tokens
from agentkit.threads.compaction import Compaction, CompactionPlan, entry_body, plan, tighter
from agentkit.threads.conversation import messages_of
from agentkit.threads.excerpts import excerpt, shorten_answer
from agentkit.threads.fork import copy_entries
from agentkit.threads.sizes import thread_tokens
from agentkit.threads.store import Append, Call, Entry, Log
from agentkit.tool.codec import call_to_json, to_json


@dataclass
class Book:
    """A thread's log, written entry by entry."""

    entries: list[Entry] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    @property
    def log(self) -> Log:
        return Log(tuple(self.entries), tuple(self.calls), len(self.entries))

    def add(self, body: dict[str, Any], kind: Any = "message") -> int:
        self.entries.append(Entry(len(self.entries), kind, body, None, 0.0))
        return len(self.entries) - 1

    def says(self, text: str) -> int:
        return self.add({"message": to_json(user(text))})

    def answers(self, text: str = "", results: list[str | None] = [], **response: Any) -> int:  # noqa: B006
        """A response with one call per result; a result of None is yet to come. Ids are used again and again."""
        calls = [ToolCall(f"c{n}", "look", {"at": n}) for n in range(len(results))]
        message = AssistantMessage((*([TextPart(text)] if text else []), *calls))
        seq = self.add({"message": to_json(message), "response": {"finish": "stop", **response}})
        for n, (call, result) in enumerate(zip(calls, results, strict=True)):
            said = None if result is None else to_json(ToolMessage(call.id, call.name, (TextPart(result),)))
            status: Any = "waiting" if said is None else "answered"
            self.calls.append(Call(seq, n, call.id, status, call_to_json(call), answer=said))
        return seq

    def compact(self, policy: Compaction, *, summary: str | None = "What happened.") -> CompactionPlan | None:
        tokens = thread_tokens(self.log)
        made = plan(self.log, policy, tokens, summary=summary is not None)
        if made is not None:
            self.add(entry_body(made, tokens, summary or "(left out)", {}), "compaction")
        return made

    @property
    def read(self) -> list[str]:
        """The conversation as the model reads it, in short."""
        return [short(message) for message in messages_of(self.log, sending=True)]


def short(message: Message) -> str:
    match message:
        case ToolMessage():
            return f"= {message.text}"
        case AssistantMessage():
            return " ".join([message.text, *(c.name for c in message.calls)]).strip()
        case UserMessage(content):
            return "".join(p.text for p in content if isinstance(p, TextPart))
        case _:
            raise AssertionError(message)


SMALL = Compaction(window=1_000, result_tokens=20, keep_results=1, keep_turns=1, summary_tokens=50)
LONG = "word " * 300  # 306 tokens, by estimate


def looked(*results: str) -> Book:
    """A question, and one response with one call for each result."""
    book = Book()
    book.says("Find it.")
    for n, result in enumerate(results):
        book.answers(f"Step {n}.", [result])
    return book


# ---------------------------------------------------------------- what is done


def test_a_conversation_below_the_threshold_is_left_alone() -> None:
    assert looked("short", LONG).compact(SMALL) is None


def test_old_tool_outputs_are_shortened_first_and_say_how_to_be_read() -> None:
    book = looked(LONG, LONG, LONG)
    book.compact(replace(SMALL, target=0.79))
    note = '[… 1,402 of 1,500 characters left out; read_result(call_id="1/0", offset=66) reads them …]'
    assert book.read == [
        "Find it.",
        "Step 0. look",
        f"= {LONG[:66]}\n{note}\n{LONG[-32:].strip()}",
        "Step 1. look",
        f"= {LONG}",
        "Step 2. look",
        f"= {LONG}",
    ]


def test_then_old_turns_give_way_to_a_summary() -> None:
    book = Book()
    for n in range(8):
        book.says(f"Question {n}: {'why ' * 60}")
        book.answers(f"Answer {n}: {'because ' * 60}")
    book.says("And now?")
    book.compact(replace(SMALL, keep_turns=2))
    assert [line[:14] for line in book.read] == [
        "What happened.",
        "Question 6: wh",
        "Answer 6: beca",
        "Question 7: wh",
        "Answer 7: beca",
        "And now?",
    ]


def test_a_long_task_keeps_the_users_message_after_the_summary() -> None:
    book = looked(*["result"] * 200)
    made = book.compact(SMALL)
    assert made is not None
    assert 400 < made.tokens <= 500
    assert book.read[:3] == ["What happened.", "Find it.", "Step 188. look"]
    assert book.read[-2:] == ["Step 199. look", "= result"]


def test_what_stays_of_an_earlier_compaction_goes_with_the_next() -> None:
    book = looked(*["result"] * 200)
    book.compact(SMALL)
    book.says("Go on.")
    for n in range(200):
        book.answers(f"More {n}.", ["found"])
    made = book.compact(SMALL, summary="All that happened.")
    assert made is not None
    assert [short(said.message) for said in made.dropped][:3] == ["What happened.", "Find it.", "Step 188. look"]
    assert book.read[:3] == ["All that happened.", "Go on.", "More 188. look"]


def test_a_long_summary_is_not_replaced_alone() -> None:
    """The message after it is older than what it stands for: a conversation from there on would be the old one."""
    book = looked(*["result"] * 200)
    book.compact(replace(SMALL, target=0.1), summary="It is a long story. " * 200)
    before = book.read
    book.compact(replace(SMALL, keep_turns=20))
    assert book.read == before


def test_without_a_summary_outputs_are_shortened_harder_before_turns_go() -> None:
    book = looked(*[LONG] * 3)
    policy = replace(SMALL, keep_results=3, target=0.75)
    with_summary, without = plan(book.log, policy, 1_200), plan(book.log, policy, 1_200, summary=False)
    assert with_summary is not None
    assert with_summary.start == 3
    assert without is not None
    assert without.start is None
    assert list(without.answers) == ["1/0", "2/0"]


def test_a_call_without_an_answer_stays_with_what_follows_it() -> None:
    book = Book()
    book.says("Send it.")
    book.answers("", [None])
    for n in range(60):
        book.says(f"Wait {n}. {'please ' * 10}")
        book.answers("I wait.")
    assert book.compact(SMALL) is None
    assert book.read[:3] == ["Send it.", "look", "= no result yet: this call waits for the user's approval"]


def test_one_huge_output_is_shortened_even_if_it_is_the_newest() -> None:
    book = looked("word " * 30_000)
    book.compact(SMALL)
    assert book.read[0] == "Find it."
    assert messages_tokens(messages_of(book.log)) < 150


def test_outputs_are_shortened_to_a_quarter_where_nothing_else_is_left() -> None:
    book = Book()
    book.says("Find it.")
    book.answers("", [LONG] * 4)
    book.compact(replace(SMALL, result_tokens=200))
    assert {len(line) < 350 for line in book.read[2:]} == {True}
    assert thread_tokens(book.log) < SMALL.threshold_tokens


def test_where_nothing_can_be_gained_nothing_is_done() -> None:
    book = Book()
    book.says(LONG * 10)
    assert book.compact(SMALL) is None


def test_a_fork_keeps_the_compaction() -> None:
    book = looked(*["result"] * 200)
    book.compact(SMALL)
    fork = Book()
    for entry in copy_entries(book.log, None):
        assert isinstance(entry, Append)
        seq = fork.add(dict(entry.body), entry.kind)
        fork.calls += [Call(seq, n, c.id, c.status, c.body, answer=c.answer) for n, c in enumerate(entry.calls)]
    assert fork.read == book.read


def test_a_refused_conversation_is_compacted_whatever_was_expected_of_the_window() -> None:
    book = looked(*["result"] * 200)
    policy = Compaction(window=200_000)
    tokens = thread_tokens(book.log)
    assert plan(book.log, policy, tokens) is None
    made = plan(book.log, tighter(policy, tokens), tokens)
    assert made is not None
    assert made.tokens <= tokens * policy.target


# ---------------------------------------------------------------- pieces


def test_a_shortened_output_names_its_images() -> None:
    answer = ToolMessage("c", "look", (TextPart("A map:"), ImagePart(data=b"png")))
    (said,) = shorten_answer(answer, 100, "3/1")
    assert said.text == 'A map:\n[… 1 image left out; read_result(call_id="3/1", offset=6) reads them …]'


def test_a_short_text_is_not_cut() -> None:
    assert excerpt("as it is", 100) == "as it is"


@given(st.text(max_size=2_000), st.integers(0, 300))
def test_a_cut_text_is_its_beginning_a_note_and_its_end(text: str, tokens: int) -> None:
    made = excerpt(text, tokens)
    if made != text:
        begin, _, rest = made.partition("\n[… ")
        end = rest.partition(f" of {len(text):,} characters left out …]\n")[2]
        assert text.startswith(begin)
        assert text.endswith(end)
        assert len(begin) + len(end) < len(text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"window": 10}, r"Compaction\(window=10\): expected an integer \(1,000 or more\)"),
        ({"threshold": 1.5}, r"Compaction\(threshold=1.5\): expected a fraction above 0, at most 1"),
        ({"target": 0.9}, r"Compaction\(target=0.9\): expected a fraction above 0 and below the threshold, 0.8"),
        ({"keep_turns": -1}, r"Compaction\(keep_turns=-1\): expected an integer \(0 or more\)"),
        ({"window": 1_000}, r"Compaction\(summary_tokens=2000\): expected 0 to half of the size .*, 250"),
    ],
)
def test_a_value_out_of_its_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Compaction(**given)


# ---------------------------------------------------------------- counting


def test_the_providers_count_and_an_estimate_of_what_came_after() -> None:
    book = Book()
    book.says("Hi")
    book.answers("Hello.", ["found"], usage=[5_000, 40, 0, 0, 0])
    came_after = messages_tokens([ToolMessage("c0", "look", (TextPart("found"),)), user("Thanks")])
    book.says("Thanks")
    assert thread_tokens(book.log) == 5_040 + came_after


def test_after_a_compaction_the_count_is_less_by_the_estimate_of_what_went() -> None:
    book = looked(*["result"] * 200)
    book.answers("Found.", usage=[10_000, 50, 0, 0, 0])
    before = messages_tokens(messages_of(book.log))
    assert thread_tokens(book.log) == 10_050
    book.compact(SMALL)
    assert thread_tokens(book.log) == 10_050 - before + messages_tokens(messages_of(book.log))


def test_a_thread_that_no_provider_counted_is_estimated() -> None:
    book = Book()
    book.says("Hi")
    book.answers("Hello.", usage=[0, 0, 0, 0, 0])
    assert thread_tokens(book.log, extra=100) == 100 + messages_tokens(messages_of(book.log))


# ---------------------------------------------------------------- properties

SIZES = st.integers(1, 60)
RESULTS = st.lists(st.sampled_from([0, 40, 1_000, 4_000, 12_000]), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), SIZES),
        st.tuples(st.just("answer"), SIZES, RESULTS),
        st.tuples(st.just("broken"), SIZES),
    ),
    min_size=6,
    max_size=30,
)
POLICIES = st.builds(
    Compaction,
    window=st.integers(2_000, 4_000),
    threshold=st.floats(0.6, 1.0),
    target=st.floats(0.2, 0.55),
    keep_results=st.integers(0, 6),
    keep_turns=st.integers(0, 8),
    result_tokens=st.integers(0, 200),
    summary_tokens=st.integers(0, 200),
)


def written(steps: list[tuple[Any, ...]], book: Book) -> None:
    for n, step in enumerate(steps):
        match step:
            case ("user", size):
                book.says(f"u{n} " + "ask " * size)
            case ("answer", size, results):
                book.answers(f"a{n} " + "say " * size, ["out " * (r // 4) for r in results])
            case ("broken", size):
                book.answers(f"b{n} " + "sa " * size, finish="error")


def check(book: Book, before: Log, policy: Compaction, made: CompactionPlan | None) -> None:
    """What holds after any compaction."""
    log = book.log
    assert log.entries[: len(before.entries)] == before.entries
    assert log.calls == before.calls
    assert len(log.entries) - len(before.entries) == (made is not None)

    messages = messages_of(log, sending=True)
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.call_id == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [call.id for call in message.calls] if isinstance(message, AssistantMessage) else []
    assert waiting == []

    whole = messages_of(replace(log, entries=tuple(e for e in log.entries if e.kind == "message")))
    newest = next((m for m in reversed(whole) if isinstance(m, UserMessage)), None)
    assert newest is None or newest in messages
    assert thread_tokens(log) <= policy.threshold_tokens


@given(st.lists(STEPS, min_size=1, max_size=3), POLICIES, st.booleans())
def test_any_conversation_comes_below_the_threshold_whole(
    parts: list[list[tuple[Any, ...]]], policy: Compaction, summary: bool
) -> None:
    """Also compacted again and again; with a summary and without."""
    book = Book()
    for steps in parts:
        written(steps, book)
        before = book.log
        made = book.compact(policy, summary="S" * 100 if summary else None)
        check(book, before, policy, made)


@given(STEPS, POLICIES, st.integers(0, 20), st.floats(0.5, 2.0))
def test_answers_stay_with_their_calls_whatever_was_counted(
    steps: list[tuple[Any, ...]], policy: Compaction, waiting: int, factor: float
) -> None:
    """Calls that wait, and counts of a provider that do not agree with the estimate."""
    book = Book()
    written(steps[:waiting], book)
    book.answers("", [None])
    written(steps[waiting:], book)
    book.answers("Counted.", ["x" * 400], usage=[int(thread_tokens(book.log) * factor), 10, 0, 0, 0])
    open_calls = [call for call in book.calls if call.answer is None]
    made = book.compact(policy)
    read = messages_of(book.log, sending=True)
    calls = [call for m in read if isinstance(m, AssistantMessage) for call in m.calls]
    answers = [m for m in read if isinstance(m, ToolMessage)]
    assert [call.id for call in calls] == [answer.call_id for answer in answers]
    assert sum("waits for the user's approval" in answer.text for answer in answers) == len(open_calls)
    assert made is None or made.start is None or all(call.seq >= made.start for call in open_calls)
