// What runs: every endpoint with its status and live charts; and what can be deployed: the catalog's cards.

import { call } from "./api.js";
import * as charts from "./charts.js";

const byId = (id) => document.getElementById(id);
const METHODS = { p_eagle: "P-EAGLE", eagle3: "EAGLE-3", none: "no speculation" };

export async function start(refresh) {
  const cards = await call("GET", "/v1/catalog");
  byId("cards").replaceChildren(...cards.map((card) => catalogCard(card, refresh)));
}

function make(tag, text = "", attributes = {}) {
  return Object.assign(document.createElement(tag), { textContent: text, ...attributes });
}

// The endpoints' cards, changed in place, so that focus and what is open stay.
export function draw(endpoints, refresh) {
  const box = byId("endpoints");
  const names = endpoints.map((endpoint) => endpoint.spec.name);
  for (const element of [...box.children]) if (!names.includes(element.dataset.name)) element.remove();
  if (!endpoints.length) box.replaceChildren(make("p", "No endpoint yet. Deploy one from the catalog."));
  for (const endpoint of endpoints) {
    const name = endpoint.spec.name;
    let element = box.querySelector(`[data-name="${CSS.escape(name)}"]`);
    if (!element) {
      element = endpointCard(name, refresh);
      box.append(element);
    }
    const { speculation, model } = endpoint.spec;
    const k = speculation.num_speculative_tokens ? `, K = ${speculation.num_speculative_tokens}` : "";
    element.querySelector(".what").textContent = `${model.split("/").at(-1)}, ${METHODS[speculation.kind]}${k}`;
    const status = element.querySelector(".status");
    if (status.textContent !== endpoint.status) status.textContent = endpoint.status; // else screen readers say it again
    status.dataset.status = endpoint.status;
    element.querySelector(".replicas").textContent = `${endpoint.running} of ${endpoint.spec.replicas.minimum} to ${endpoint.spec.replicas.maximum} replicas`;
    element.querySelector(".reason").textContent = endpoint.failure_reason ?? (endpoint.head_failure ? `Without its head: ${endpoint.head_failure}` : "");
    element.querySelector(".charts").replaceChildren(...(endpoint.status === "InService" ? charts.draw(name) : []));
    element.querySelector("button").disabled = endpoint.status === "Deleting";
  }
}

function endpointCard(name, refresh) {
  const element = make("article", "", { className: "card" });
  element.dataset.name = name;
  const remove = make("button", "Delete", { type: "button", className: "danger" });
  remove.setAttribute("aria-label", `Delete ${name}`);
  remove.addEventListener("click", () => confirmed(name, refresh));
  const status = make("span", "", { className: "status" });
  status.setAttribute("role", "status");
  element.append(
    make("h3", name), make("p", "", { className: "what" }), status, make("span", "", { className: "replicas" }),
    make("p", "", { className: "reason" }), make("div", "", { className: "charts" }), remove,
  );
  return element;
}

function confirmed(name, refresh) {
  const dialog = byId("delete-dialog");
  byId("delete-text").textContent = `${name} stops taking requests at once; those that run are let finish.`;
  dialog.returnValue = "cancel";
  dialog.showModal();
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue === "delete") await refresh(() => call("DELETE", `/v1/endpoints/${encodeURIComponent(name)}`));
  }, { once: true });
}

function catalogCard(card, refresh) {
  const element = make("article", "", { className: "card" });
  const needs = card.hardware === "cpu" ? "runs on a CPU" : `${card.minimum_gpus} × ${card.gpu_memory_gib} GiB GPU`;
  element.append(make("h3", card.title), make("p", `${card.parameters_billion} billion parameters, ${needs}, ${card.license}`));
  for (const note of card.notes) element.append(make("p", note, { className: "note" }));
  element.append(deployForm(card, refresh), environment(card), snippets(card));
  return element;
}

function deployForm(card, refresh) {
  const form = make("form", "", { className: "fields" });
  const name = Object.assign(document.createElement("input"), { value: card.name, required: true, pattern: "[a-zA-Z0-9](-*[a-zA-Z0-9])*", maxLength: 63 });
  const method = document.createElement("select");
  method.append(...[...Object.keys(card.heads), "none"].map((kind) => new Option(METHODS[kind], kind)));
  const k = Object.assign(document.createElement("input"), { type: "number", min: 1, max: 16, value: card.num_speculative_tokens });
  method.addEventListener("change", () => (k.disabled = method.value === "none"));
  k.disabled = method.value === "none";
  for (const [text, input] of [["Endpoint name", name], ["Method", method], ["Draft tokens (K)", k]]) {
    const label = make("label", `${text} `);
    label.append(input);
    form.append(label);
  }
  const button = make("button", "Deploy", { type: "submit", className: "primary" });
  button.setAttribute("aria-label", `Deploy ${card.title}`);
  const told = make("p", "", { className: "reason" });
  told.setAttribute("role", "status");
  form.append(button, told);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = { model: card.name, name: name.value, speculation: method.value };
    if (!k.disabled) wanted.num_speculative_tokens = Number(k.value);
    told.textContent = "";
    try {
      await call("POST", "/v1/endpoints", wanted);
      await refresh();
      location.hash = "#endpoints";
    } catch (error) {
      told.textContent = error.message;
    }
  });
  return form;
}

function environment(card) {
  const details = document.createElement("details");
  const table = make("table");
  table.createCaption().textContent = "As SageMaker shows it";
  const body = table.createTBody();
  for (const [name, value] of Object.entries(card.environment)) {
    const row = body.insertRow();
    row.append(make("th", name, { scope: "row" }));
    row.insertCell().textContent = value;
  }
  const box = make("div", "", { className: "scroll", tabIndex: 0 });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", `Environment of ${card.title}`);
  box.append(table);
  details.append(make("summary", "Environment preset"), box);
  return details;
}

function snippets(card) {
  const details = document.createElement("details");
  details.append(make("summary", "Call it"));
  const name = card.name;
  const texts = {
    curl: `curl ${location.origin}/v1/chat/completions -H 'Content-Type: application/json' -H "Authorization: Bearer $PEAGLE_API_KEY" \\
  -d '{"model": "${name}", "messages": [{"role": "user", "content": "Hello!"}]}'`,
    openai: `from openai import OpenAI

client = OpenAI(base_url="${location.origin}/v1", api_key="…")
for chunk in client.chat.completions.create(model="${name}", messages=[{"role": "user", "content": "Hello!"}], stream=True):
    print(chunk.choices[0].delta.content or "", end="")`,
    boto3: `import boto3, json

runtime = boto3.client("sagemaker-runtime", endpoint_url="${location.origin}", region_name="us-east-1")
body = json.dumps({"messages": [{"role": "user", "content": "Hello!"}]})
answer = runtime.invoke_endpoint(EndpointName="${name}", ContentType="application/json", Body=body)
print(json.load(answer["Body"])["choices"][0]["message"]["content"])`,
  };
  for (const [title, text] of Object.entries(texts)) {
    const pre = make("pre", text, { tabIndex: 0 });
    pre.setAttribute("role", "region");
    pre.setAttribute("aria-label", `${title}, for ${card.title}`);
    const copy = make("button", "Copy", { type: "button" });
    copy.setAttribute("aria-label", `Copy the ${title} snippet for ${card.title}`);
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text).then(
        () => (copy.textContent = "Copied"),
        () => getSelection().selectAllChildren(pre), // where the browser forbids it, selected text is a key press away
      );
      setTimeout(() => (copy.textContent = "Copy"), 2000);
    });
    const head = make("div", "", { className: "snippet" });
    head.append(make("h4", title), copy);
    details.append(head, pre);
  }
  return details;
}
