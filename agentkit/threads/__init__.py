"""Persistent threads: stores, the journal of a run, resuming, approvals, compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.threads.allow_rules import AllowRule
    from agentkit.threads.compaction import Compaction
    from agentkit.threads.manager import ThreadManager
    from agentkit.threads.results import StoredResults
    from agentkit.threads.sql.sqlite import SQLiteStore
    from agentkit.threads.store import Append, Call, Entry, Lease, Log, Move, NewCall, Revise, Store, Thread
    from agentkit.threads.store_url import open_store

__all__ = [
    "AllowRule",
    "Append",
    "Call",
    "Compaction",
    "Entry",
    "Lease",
    "Log",
    "Move",
    "NewCall",
    "Revise",
    "SQLiteStore",
    "Store",
    "StoredResults",
    "Thread",
    "ThreadManager",
    "open_store",
]

explained_module(
    __name__,
    "write ThreadManager(…), from agentkit import ThreadManager",
    homes={
        "agentkit.threads.allow_rules": "AllowRule",
        "agentkit.threads.compaction": "Compaction",
        "agentkit.threads.manager": "ThreadManager",
        "agentkit.threads.store_url": "open_store",
        "agentkit.threads.results": "StoredResults",
        "agentkit.threads.sql.sqlite": "SQLiteStore",
        "agentkit.threads.store": "Append Call Entry Lease Log Move NewCall Revise Store Thread",
    },
)
