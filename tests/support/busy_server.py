"""A server of threads that many clients may reach at once."""

from __future__ import annotations

from http.server import ThreadingHTTPServer


class BusyServer(ThreadingHTTPServer):
    """Has room for 128 connections that no thread has taken yet: more than 5, the default, would be reset."""

    request_queue_size = 128
