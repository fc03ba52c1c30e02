"""Threads that outlive the process: stores, the journal of a run, resuming, approvals, compaction."""
