// One answer while it comes: its tokens, how deep each was drafted, and what it took.

import { events } from "./api.js";

export class Answer {
  constructor() {
    this.tokens = []; // {text, depth}: depth 0 is the target's own, null is not known
    this.text = "";
    this.passes = 0; // engine steps after the first token, as far as they can be told apart
    this.stepTokens = 0; // tokens of those
    this.completionTokens = 0;
    this.began = performance.now();
    this.first = this.last = null;
  }

  add(event) {
    const choice = event.choices?.[0];
    if (event.usage) this.completionTokens = event.usage.completion_tokens;
    const text = choice?.delta?.content ?? "";
    const drafted = choice?.draft_depths ?? (text ? [{ text, depth: null }] : []);
    if (!drafted.length) return [];
    const now = performance.now();
    if (this.first === null) this.first = now;
    else if (drafted.every((token) => token.depth !== null)) {
      this.passes += 1;
      this.stepTokens += drafted.length;
    }
    this.last = now;
    this.text += text;
    this.tokens.push(...drafted);
    return drafted;
  }

  get ttft() {
    return this.first === null ? null : (this.first - this.began) / 1000;
  }

  get seconds() {
    return this.last === null ? null : (this.last - this.began) / 1000;
  }

  get count() {
    return this.completionTokens || this.tokens.length;
  }

  get rate() {
    return this.last > this.first ? (this.count - 1) / ((this.last - this.first) / 1000) : null;
  }

  get acceptanceLength() {
    return this.passes ? this.stepTokens / this.passes : null;
  }
}

export async function ask(answer, endpoint, messages, sampling, signal, tell) {
  const body = { model: endpoint, messages, ...sampling, stream: true, stream_options: { include_usage: true }, draft_depths: true };
  for await (const event of events("/v1/chat/completions", body, signal)) tell(answer.add(event));
}

export function number(value, digits, unit) {
  return value === null || Number.isNaN(value) ? "–" : `${value.toFixed(digits)}${unit}`;
}

export function figures(answer) {
  return [
    ["TTFT", number(answer.ttft === null ? null : answer.ttft * 1000, 0, " ms")],
    ["tokens/s", number(answer.rate, 1, "")],
    ["tokens", String(answer.count)],
    ["acceptance length", number(answer.acceptanceLength, 2, "")],
  ];
}

const SAID = { 0: "written by the target", null: "several steps at once" };

// A span a token; what a model writes is text, never markup.
export function show(element, tokens) {
  for (const { text, depth } of tokens) {
    const span = document.createElement("span");
    span.className = "token";
    if (depth !== null) span.dataset.depth = Math.min(depth, 5);
    span.title = SAID[depth] ?? `draft token ${depth}, accepted`;
    span.textContent = text;
    element.append(span);
  }
}

export function list(pairs) {
  const element = document.createElement("dl");
  element.className = "figures";
  for (const [name, value] of pairs) {
    const pair = document.createElement("div");
    const [dt, dd] = ["dt", "dd"].map((tag) => document.createElement(tag));
    [dt.textContent, dd.textContent] = [name, value];
    pair.append(dt, dd);
    element.append(pair);
  }
  return element;
}
