"""Pages of the web as Markdown."""
