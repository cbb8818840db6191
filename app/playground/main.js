// Which view is shown, and the look at the server every two seconds that all of them share.

import { ApiError, call, key } from "./api.js";
import * as charts from "./charts.js";
import * as chat from "./chat.js";
import * as endpoints from "./endpoints.js";
import * as race from "./race.js";

const LOOK_MS = 2000;
const byId = (id) => document.getElementById(id);

function show() {
  const views = [...document.querySelectorAll("[data-view]")];
  const wanted = location.hash.slice(1);
  const name = views.some((view) => view.dataset.view === wanted) ? wanted : "chat";
  for (const view of views) view.hidden = view.dataset.view !== name;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function trouble(error) {
  const wrong = error instanceof ApiError ? error : null;
  byId("trouble").hidden = !error;
  byId("trouble").textContent = error ? (wrong?.status === 401 ? `${error.message} (button “API key”)` : error.message) : "";
}

async function refresh(action = null) {
  try {
    await action?.();
    const all = await call("GET", "/v1/endpoints");
    const answering = all.filter((one) => one.status === "InService" || one.status === "Updating").map((one) => one.spec.name);
    await Promise.all(
      answering.map(async (name) => {
        const stats = await call("GET", `/v1/endpoints/${encodeURIComponent(name)}/stats`).catch(() => null);
        if (stats) charts.add(name, stats);
      }),
    );
    charts.forget(all.map((one) => one.spec.name));
    endpoints.draw(all, refresh);
    chat.offer(answering);
    race.offer(answering);
    trouble(null);
  } catch (error) {
    trouble(error);
  }
}

async function look() {
  if (document.visibilityState === "visible") await refresh();
  setTimeout(look, LOOK_MS);
}

function theme() {
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.style.colorScheme = kept;
  byId("theme").addEventListener("click", () => {
    const dark = root.style.colorScheme ? root.style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.style.colorScheme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.style.colorScheme);
  });
}

function keys() {
  const dialog = byId("key-dialog");
  byId("key-button").addEventListener("click", () => {
    byId("key").value = key.get();
    dialog.returnValue = "cancel";
    dialog.showModal();
  });
  byId("key").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      dialog.close("save");
    }
  });
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue !== "save") return;
    key.set(byId("key").value);
    await begin();
  });
}

async function begin() {
  await endpoints.start(refresh).catch(trouble);
  await refresh();
}

theme();
keys();
show();
addEventListener("hashchange", show);
chat.start();
race.start();
await begin();
setTimeout(look, LOOK_MS);
