"""SQL stores: the operations, shared by two databases, and a bridge to their threads."""
