// The colours, set before the first paint: auto (the system's), light or dark. A classic script, so that it blocks.
document.documentElement.dataset.theme = localStorage.getItem("agentkit.theme") || "auto";
