// The race: one prompt to several endpoints at once, side by side, and a table at the end.

import { Answer, ask, figures, list, number, show } from "./answer.js";

const byId = (id) => document.getElementById(id);
let running = null;

export function start() {
  byId("race-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!running) race();
  });
  byId("race-stop").addEventListener("click", () => running?.abort());
}

export function offer(names) {
  const box = byId("race-endpoints");
  const known = [...box.querySelectorAll("input")];
  if (known.map((input) => input.value).join() === names.join()) return;
  const off = new Set(known.filter((input) => !input.checked).map((input) => input.value));
  box.replaceChildren(
    ...names.map((name) => {
      const label = document.createElement("label");
      const input = Object.assign(document.createElement("input"), { type: "checkbox", value: name, checked: !off.has(name) });
      label.append(input, ` ${name}`);
      return label;
    }),
  );
  if (!names.length) box.textContent = "No endpoint is in service.";
}

async function race() {
  const names = [...byId("race-endpoints").querySelectorAll("input:checked")].map((input) => input.value);
  byId("result").textContent = names.length ? "" : "Choose at least one endpoint.";
  if (!names.length) return;
  running = new AbortController();
  busy(true);
  const prompt = byId("race-prompt").value.trim();
  const settings = { temperature: 0, max_tokens: Number(byId("race-tokens").value) || 128 };
  const lanes = names.map((name) => lane(name));
  byId("lanes").replaceChildren(...lanes.map((one) => one.element));
  await Promise.all(lanes.map((one) => run(one, prompt, settings)));
  byId("result").replaceChildren(table(lanes));
  running = null;
  busy(false);
}

function lane(name) {
  const element = document.createElement("article");
  const title = document.createElement("h3");
  title.textContent = name;
  const text = document.createElement("div");
  text.className = "text";
  text.tabIndex = 0;
  const below = document.createElement("div");
  element.append(title, text, below);
  return { name, element, text, below, answer: new Answer(), failed: "" };
}

async function run(one, prompt, settings) {
  const messages = [{ role: "user", content: prompt }];
  try {
    await ask(one.answer, one.name, messages, settings, running.signal, (tokens) => {
      show(one.text, tokens);
      one.text.scrollTop = one.text.scrollHeight;
      one.below.replaceChildren(list(figures(one.answer)));
    });
  } catch (error) {
    one.failed = error.name === "AbortError" ? "stopped" : error.message;
    const words = document.createElement("p");
    words.className = "note";
    words.textContent = one.failed;
    one.below.append(words);
  }
}

function table(lanes) {
  const rows = [...lanes].sort((a, b) => (a.failed ? 1 : 0) - (b.failed ? 1 : 0) || a.answer.seconds - b.answer.seconds);
  const slowest = Math.max(...rows.filter((one) => !one.failed).map((one) => one.answer.seconds));
  const table = document.createElement("table");
  table.createCaption().textContent = "Who was first";
  const head = table.createTHead().insertRow();
  for (const name of ["endpoint", "time", "speedup", "TTFT", "tokens/s", "tokens", "acceptance length", "same text"]) {
    head.append(Object.assign(document.createElement("th"), { scope: "col", textContent: name }));
  }
  const body = table.createTBody();
  for (const { name, answer, failed } of rows) {
    const row = body.insertRow();
    row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: name }));
    const same = answer.text === rows[0].answer.text ? "yes" : "no";
    const cells = failed
      ? [failed, "–", "–", "–", "–", "–", "–"]
      : [
          number(answer.seconds, 2, " s"), number(slowest / answer.seconds, 2, "×"), number(answer.ttft * 1000, 0, " ms"),
          number(answer.rate, 1, ""), String(answer.count), number(answer.acceptanceLength, 2, ""), same,
        ];
    for (const cell of cells) row.insertCell().textContent = cell;
  }
  return table;
}

function busy(now) {
  byId("race-stop").disabled = !now;
  byId("race-form").querySelector("[type=submit]").disabled = now;
}
