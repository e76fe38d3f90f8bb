// Before the first paint: the theme that was chosen, if any.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch { /* no storage: the system's theme */ }
document.documentElement.classList.add("js");
