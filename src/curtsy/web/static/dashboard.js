// Enhancements for browsers with scripts: live parts, relative times, shortcuts, checks of seeds while they are typed.
"use strict";
(() => {
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const one = (what, where = document) => where.querySelector(what);
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

  // The theme
  const root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  for (const button of all("[data-theme-toggle]")) {
    const say = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.hidden = false;
    say();
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* then only for this page */ }
      all("[data-theme-toggle]").forEach((other) => { other.textContent = isDark() ? "Light theme" : "Dark theme"; });
    });
  }

  // Relative times, in the format of the server
  const span = (s) => {
    if (s < 60) return `${Math.round(s)} s`;
    for (const [unit, length, smaller, part, most] of [["min", 60, "s", 1, 60], ["h", 3600, "min", 60, 24], ["d", 86400, "h", 3600, 1e9]]) {
      if (s < length * most) {
        const whole = Math.floor(s / length), rest = Math.floor(s % length / part);
        return rest && whole < 10 ? `${whole} ${unit} ${rest} ${smaller}` : `${whole} ${unit}`;
      }
    }
  };
  const passTimes = (where = document) => {
    for (const time of all("time[data-ago]", where)) {
      const s = (Date.now() - Date.parse(time.dateTime)) / 1000;
      time.textContent = Math.abs(s) < 1.5 ? "now" : s > 0 ? `${span(s)} ago` : `in ${span(-s)}`;
    }
  };
  setInterval(passTimes, 5000);

  // Live parts: an event says that something changed, then the part is reloaded
  for (const part of all("[data-live]")) {
    const mark = one("[data-live-mark]");
    const say = (state, text) => { if (mark) { mark.hidden = false; mark.dataset.state = state; if (mark.textContent !== text) mark.textContent = text; } };
    let busy = false, again = false, ended = false, timer = 0;
    const fetchPart = async () => {
      if (busy) { again = true; return; }
      busy = true;
      try {
        const answer = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
        if (answer.redirected) { location.reload(); return; }
        if (answer.ok) {
          const made = new DOMParser().parseFromString(await answer.text(), "text/html");
          const held = part.contains(document.activeElement) ? document.activeElement : null;
          const focused = held?.id ? `#${CSS.escape(held.id)}` : held?.matches("a[href]") ? `a[href="${CSS.escape(held.getAttribute("href"))}"]` : "";
          part.replaceChildren(...made.body.childNodes);
          passTimes(part);
          if (focused) one(focused, part)?.focus({ preventScroll: true });
          part.dispatchEvent(new CustomEvent("fresh"));
        }
      } catch { /* the next event retries */ }
      setTimeout(() => { busy = false; if (again) { again = false; fetchPart(); } }, 1000);
    };
    const poll = () => {
      say("asking", "Updates every 5 s");
      clearInterval(timer);
      timer = setInterval(() => { if (!document.hidden && !ended) fetchPart(); }, 5000);
    };
    if (!part.dataset.events) continue;
    const source = new EventSource(part.dataset.events);
    let known = 0;
    const heard = (event) => {
      clearInterval(timer);
      say("live", "Live");
      if (known++ || event.type === "state") fetchPart();
      let data = {};
      try { data = JSON.parse(event.data); } catch { /* not JSON */ }
      if (["finished", "cancelled", "deleting"].includes(data.state)) {
        ended = true;
        source.close();
        say("ended", "Ended");
        if (part.dataset.state && part.dataset.state !== data.state) location.reload();
      }
    };
    source.addEventListener("progress", heard);
    source.addEventListener("state", heard);
    source.addEventListener("error", () => { if (!ended && source.readyState === EventSource.CLOSED) poll(); });
  }

  // Reloading the page must not create another key
  if (one(".secret")) history.replaceState(null, "", location.href);

  // Confirmation before actions that cannot be undone
  document.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });

  // Select all or none
  for (const box of all("[data-tick-all]")) {
    box.hidden = false;
    box.closest("label").hidden = false;
    box.addEventListener("change", () => all("input[name=ids]").forEach((other) => { other.checked = box.checked; }));
  }

  // Seeds, checked while they are typed
  const form = one("[data-seeds]");
  if (form) {
    const shown = one("[data-checked]");
    let timer = 0, asked = 0;
    const check = async () => {
      const mine = ++asked;
      const body = new FormData(form);
      if (!one("[name=file]", form)?.files.length) body.delete("file");
      try {
        const answer = await fetch("/new/check", { method: "POST", body, headers: { "X-Part": "seeds" } });
        if (!answer.ok || mine !== asked) return;
        const made = new DOMParser().parseFromString(await answer.text(), "text/html");
        shown.replaceChildren(...made.body.childNodes);
      } catch { /* submitting the form reports it */ }
    };
    const name = one("[name=schedule_name]", form);
    name?.addEventListener("input", () => { one("[data-begin]", form).textContent = name.value.trim() ? "Create the schedule" : "Start the crawl"; });
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(check, 250); });
    if (one("[name=seeds]", form).value.trim()) check();
  }

  // Keyboard shortcuts
  let went = false;
  const places = { o: "/", c: "/crawls", n: "/new", h: "/hosts", f: "/failures", r: "/review", l: "/selectors", s: "/schedules", e: "/explain", w: "/workers", k: "/keys" };
  const rows = () => all("[data-row]");
  const step = (by) => {
    const found = rows();
    if (!found.length) return;
    const at = found.indexOf(document.activeElement);
    found[Math.min(found.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : found.length - 1) : at + by))].focus();
  };
  const press = (key) => { const target = one(`[data-key="${CSS.escape(key)}"]`); if (target && !target.disabled) target.click(); return Boolean(target); };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typing(event.target)) { if (event.key === "Escape") event.target.blur(); return; }
    if (went) {
      went = false;
      if (places[event.key]) { event.preventDefault(); location.assign(places[event.key]); }
      return;
    }
    const help = one("#keys");
    if (event.key === "g") went = true;
    else if (event.key === "?" && help) { event.preventDefault(); help.open ? help.close() : help.showModal(); }
    else if (event.key === "/" && one("[data-search]")) { event.preventDefault(); one("[data-search]").focus(); }
    else if (press(event.key)) event.preventDefault();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
  });
  for (const button of all("[data-keys]")) { button.hidden = false; button.addEventListener("click", () => one("#keys").showModal()); }

  // Review: highlight the evidence of a value, open the fields of a correction
  const showEvidence = (id) => {
    all("mark.now, rect.now").forEach((old) => old.classList.remove("now"));
    const marks = all(`rect[data-of="${CSS.escape(id)}"], mark[data-of~="${CSS.escape(id)}"]`);
    marks.forEach((found) => found.classList.add("now"));
    const box = one("[data-source]"), found = marks.find((mark) => mark.matches("mark"));
    if (found && box) box.scrollTo({ top: found.offsetTop - box.offsetTop - box.clientHeight / 3, behavior: "smooth" });
    const picture = marks.find((mark) => mark.matches("rect"))?.closest("figure"), frame = picture?.parentElement;
    if (frame) frame.scrollTo({ top: picture.offsetTop - frame.offsetTop, behavior: "smooth" });
  };
  for (const row of all("[data-evidence]")) {
    row.addEventListener("focusin", () => showEvidence(row.dataset.evidence));
    row.addEventListener("pointerenter", () => showEvidence(row.dataset.evidence));
  }
  for (const button of all("[data-open]")) {
    button.addEventListener("click", () => {
      const details = document.getElementById(button.dataset.open);
      details.open = true;
      one("input:not([type=hidden]), textarea", details)?.focus();
    });
  }
})();
