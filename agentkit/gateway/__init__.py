"""The gateway: any client gets native calls from any model server."""
