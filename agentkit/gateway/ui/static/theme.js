// The colours, set before the first paint: auto (the system's), light or dark. A classic script, so that it blocks.
document.documentElement.dataset.theme = localStorage.getItem("agentkit.theme") || "auto";
// The page's modules set the name of the colours; if one of them is missing or of another version, none runs.
addEventListener("load", () => {
	if (document.getElementById("theme").textContent) return;
	const note = document.getElementById("banners");
	note.className = "banner red";
	note.textContent = "The page could not be loaded completely. Reload it, or restart the server.";
});
