"""The rules of threads: which calls need no approval. Added, listed and revoked; knows no run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentkit.checks.bounds import Bounds, either, instance, or_none, refuse
from agentkit.checks.spelling import methods_take, takes
from agentkit.errors import ConfigError, StoreConflict
from agentkit.foreign import argument_names
from agentkit.threads.allow_rules import AllowRule, bound_to, rules_in, with_rules
from agentkit.threads.store import Body, Store, ask_store
from agentkit.tool.registry import ToolRegistry

_TRIES: Final = 100  # of a change, while others change the same metadata

_BOUNDS: Final[Bounds] = {
    "thread_id": instance(str, "the id of a thread"),
    "rule": either(
        instance(AllowRule, "a rule"),
        instance(str, "a name"),
        words="an AllowRule, or the name of a tool, such as AllowRule('run', {'command': 'git status *'})",
    ),
    "registry": or_none(instance(ToolRegistry, "a ToolRegistry, such as agent.registry"), "for that of the manager"),
}


@methods_take
class AllowingThreads:
    """The threads of a store, of which some calls need no approval."""

    store: Store
    registry: ToolRegistry

    @takes(others=argument_names.ALLOW)
    async def allow(self, thread_id: str, rule: AllowRule | str, *, registry: ToolRegistry | None = None) -> AllowRule:
        """Let calls run without approval from now on, in every run on this thread; return the rule as it is stored.

        It covers the tool as it is now, and the thread's own calls, not those of its sub-agents. A fork does
        not get it. Calls that wait already, and are covered, run with the next run. In a run that is live, the first
        rule of a thread holds from the next request on. An equal rule is replaced.

        Args:
            thread_id: the thread.
            rule: which calls; the name of a tool stands for all its calls. A rule with a `digest` is stored as it is.
            registry: has the tool; by default the manager's. Pass `agent.registry` for a thread that an agent answers.

        Raises:
            ConfigError: there is no such tool, or it can have no call that the rule covers.
        """
        refuse("allow", {"thread_id": thread_id, "rule": rule, "registry": registry}, _BOUNDS)
        bound = bound_to(rule, self.registry if registry is None else registry)
        await self._remember(thread_id, bound)
        return bound

    async def allow_rules(self, thread_id: str) -> tuple[AllowRule, ...]:
        """Return the rules of a thread, oldest first; also those of tools that have changed since, which cover nothing.

        Raises:
            ThreadNotFound: there is no such thread.
        """
        refuse("allow_rules", {"thread_id": thread_id}, _BOUNDS)
        return rules_in((await ask_store(self.store.get, thread_id)).metadata)

    async def revoke(self, thread_id: str, rule: AllowRule | str) -> None:
        """Ask again about the calls that a rule covers, from the next call on, even if a run is live.

        Args:
            thread_id: the thread.
            rule: one of `allow_rules`, or its text as printed; the name of a tool revokes all its rules.

        Raises:
            ConfigError: there is no such rule.
        """
        refuse("revoke", {"thread_id": thread_id, "rule": rule}, _BOUNDS)

        def without(metadata: Body) -> Body:
            rules = rules_in(metadata)
            left = [
                one
                for one in rules
                if (rule not in (one.tool, str(one)) if isinstance(rule, str) else one.key != rule.key)
            ]
            if len(left) == len(rules):
                there = "; ".join(map(str, rules)) or "none"
                raise ConfigError(f"revoke: thread {thread_id!r} has no rule {str(rule)!r} (rules: {there})")
            return with_rules(metadata, left)

        await change_metadata(self.store, thread_id, without)

    async def _remember(self, thread_id: str, rule: AllowRule) -> None:
        def with_it(metadata: Body) -> Body:
            return with_rules(metadata, (*(one for one in rules_in(metadata) if one.key != rule.key), rule))

        await change_metadata(self.store, thread_id, with_it)


async def change_metadata(store: Store, thread_id: str, change: Callable[[Body], Body]) -> None:
    """Change a thread's metadata; what others change at the same time is kept.

    Args:
        store: contains the thread.
        thread_id: the thread.
        change: returns the new metadata; called again if somebody else was faster.

    Raises:
        StoreConflict: somebody else was faster each time.
        ThreadNotFound: there is no such thread.
    """
    for left in reversed(range(_TRIES)):
        before = (await ask_store(store.get, thread_id)).metadata
        try:
            await ask_store(store.update, thread_id, change(before), expect=before)
        except StoreConflict:
            if not left:
                raise
        else:
            return
