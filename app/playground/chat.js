// The chat: a conversation that survives a reload, also one in the middle of an answer.

import { Answer, ask, figures, list, show } from "./answer.js";

const byId = (id) => document.getElementById(id);
const KEPT = "conversation";
let turns = []; // {role, content, tokens?, told?, note?}
let running = null;

export function start() {
  turns = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  for (const turn of turns) {
    if (turn.unfinished) {
      turn.note = "The page was loaded anew while this was written.";
      turn.unfinished = false;
    }
    draw(turn);
  }
  keep();
  byId("chat-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!running) send();
  });
  byId("message").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      byId("chat-form").requestSubmit();
    }
  });
  byId("stop").addEventListener("click", () => running?.abort());
  byId("clear").addEventListener("click", () => {
    running?.abort();
    turns = [];
    keep();
    byId("conversation").replaceChildren();
    byId("message").focus();
  });
  byId("chat-endpoint").addEventListener("change", (event) => sessionStorage.setItem("endpoint", event.target.value));
}

// Offer the endpoints that can answer; a choice made stays.
export function offer(names) {
  const select = byId("chat-endpoint");
  const wanted = select.value || sessionStorage.getItem("endpoint");
  if ([...select.options].map((option) => option.value).join() !== names.join()) {
    select.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(wanted)) select.value = wanted;
  }
  select.disabled = !names.length;
  byId("chat-form").querySelector("[type=submit]").disabled = !names.length || running !== null;
  if (!names.length) select.replaceChildren(new Option("no endpoint is in service", ""));
}

function sampling() {
  const settings = {
    temperature: Number(byId("temperature").value),
    top_p: Number(byId("top-p").value) || 1,
    max_tokens: Number(byId("max-tokens").value) || 200,
  };
  if (byId("seed").value !== "") settings.seed = Number(byId("seed").value);
  return settings;
}

function keep() {
  sessionStorage.setItem(KEPT, JSON.stringify(turns));
}

function draw(turn) {
  const article = document.createElement("article");
  article.className = turn.role;
  const who = document.createElement("h3");
  who.textContent = turn.role === "user" ? "You" : turn.endpoint;
  const text = document.createElement("div");
  text.className = "text";
  if (turn.tokens) show(text, turn.tokens);
  else text.textContent = turn.content;
  const below = document.createElement("div");
  article.append(who, text, below);
  if (turn.told) below.replaceChildren(list(turn.told));
  if (turn.note) note(below, turn.note);
  byId("conversation").append(article);
  article.scrollIntoView({ block: "end" });
  return { article, text, below };
}

function note(below, words) {
  const paragraph = document.createElement("p");
  paragraph.className = "note";
  paragraph.textContent = words;
  below.append(paragraph);
}

async function send() {
  const endpoint = byId("chat-endpoint").value;
  const question = { role: "user", content: byId("message").value.trim() };
  if (!question.content || !endpoint) return;
  byId("message").value = "";
  turns.push(question);
  draw(question);
  const turn = { role: "assistant", content: "", tokens: [], endpoint, unfinished: true };
  const system = byId("system").value.trim();
  const messages = [
    ...(system ? [{ role: "system", content: system }] : []),
    ...turns.filter((one) => one.content).map(({ role, content }) => ({ role, content })),
  ];
  turns.push(turn);
  const { article, text, below } = draw(turn);
  article.setAttribute("aria-busy", "true");
  running = new AbortController();
  busy(true);
  const answer = new Answer();
  try {
    await ask(answer, endpoint, messages, sampling(), running.signal, (tokens) => {
      show(text, tokens);
      Object.assign(turn, { content: answer.text, tokens: answer.tokens, told: figures(answer) });
      below.replaceChildren(list(turn.told));
      keep();
    });
  } catch (error) {
    turn.note = error.name === "AbortError" ? "Stopped." : `No more came: ${error.message}`;
  }
  turn.told = figures(answer);
  turn.unfinished = false;
  keep();
  below.replaceChildren(list(turn.told));
  if (turn.note) note(below, turn.note);
  article.removeAttribute("aria-busy");
  running = null;
  busy(false);
}

function busy(now) {
  byId("stop").disabled = !now;
  byId("chat-form").querySelector("[type=submit]").disabled = now;
}
