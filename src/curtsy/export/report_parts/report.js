// The report of a bundle. All data comes from pages of others: it is only ever set as text, never as markup.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

function make(tag, text, parent, name) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = String(text);
  if (name) element.className = name;
  if (parent) parent.append(element);
  return element;
}

function link(url, parent) {
  const found = make("a", url, parent);
  if (/^https?:\/\//.test(url)) {
    found.href = url;
    found.rel = "noreferrer noopener";
    found.target = "_blank";
  }
  return found;
}

const shown = (value) =>
  value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

// The table: a filter for everything, one for each column, one for the verdict

const filters = { any: "", columns: {}, verdict: "", low: false };

function matches(record) {
  const cells = record.values.map(shown);
  const has = (text, wanted) => text.toLowerCase().includes(wanted.toLowerCase());
  if (filters.any && !cells.some((cell) => has(cell, filters.any))) return false;
  if (filters.low && !record.low) return false;
  if (filters.verdict && !record.fields.some((field) => field.verdict === filters.verdict)) return false;
  return Object.entries(filters.columns).every(([n, wanted]) => !wanted || has(cells[n], wanted));
}

function draw() {
  const body = at("rows");
  body.replaceChildren();
  const found = data.records.filter(matches);
  for (const record of found) {
    const row = make("tr", null, body, "row");
    row.tabIndex = 0;
    row.dataset.record = record.id;
    for (const value of record.values) make("div", shown(value), make("td", null, row), "cell");
    const open = () => openRecord(record, row);
    row.addEventListener("click", open);
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") open();
    });
  }
  at("count").textContent = `${found.length} of ${data.records.length} ${data.what}`;
}

function drawHead() {
  const names = make("tr", null, at("head"));
  const inputs = make("tr", null, at("head"));
  data.columns.forEach((name, n) => {
    make("th", name, names);
    const input = make("input", null, make("th", null, inputs));
    input.type = "search";
    input.setAttribute("aria-label", `Filter ${name}`);
    input.addEventListener("input", () => {
      filters.columns[n] = input.value;
      draw();
    });
  });
}

// One record: its values with their quotes, and the text that a quote is from

function openRecord(record, row) {
  for (const other of document.querySelectorAll("tr.chosen")) other.classList.remove("chosen");
  row.classList.add("chosen");
  const list = at("values");
  list.replaceChildren();
  link(record.url, make("p", null, list));
  const values = make("dl", null, list);
  for (const field of record.fields) {
    make("dt", field.name, values);
    const told = make("dd", null, values);
    make("span", shown(field.value), told);
    make("small", ` ${field.verdict}, ${field.by}`, told);
    for (const quote of field.quotes) {
      const button = make("button", quote.quote, told, "quote");
      button.type = "button";
      button.title = quote.where;
      button.addEventListener("click", () => openQuote(quote));
    }
  }
  const first = record.fields.flatMap((field) => field.quotes)[0];
  if (first) openQuote(first);
  else at("text").replaceChildren();
  at("detail").hidden = false;
  at("detail").scrollIntoView({ block: "nearest" });
}

function openQuote(quote) {
  const place = at("place");
  place.replaceChildren();
  link(quote.url, place);
  make("small", ` ${quote.where}`, place);
  const text = data.texts[quote.text];
  const box = at("text");
  box.replaceChildren();
  if (text === undefined) {
    box.append(quote.quote);
    return;
  }
  box.append(text.slice(0, quote.start));
  const mark = make("mark", text.slice(quote.start, quote.end), box);
  box.append(text.slice(quote.end));
  mark.scrollIntoView({ block: "center" });
}

drawHead();
draw();
at("any").addEventListener("input", (event) => {
  filters.any = event.target.value;
  draw();
});
at("verdict").addEventListener("change", (event) => {
  filters.verdict = event.target.value;
  draw();
});
at("low").addEventListener("change", (event) => {
  filters.low = event.target.checked;
  draw();
});
document.body.dataset.ready = "yes";
