// The desk's forms: sent as JSON with the page's token; the answer is shown as text.

import { newId } from "/static/core/ids.js";
import { drawn, qrOfLink } from "/static/core/qr.js";
import { ask } from "/static/core/server.js";
import { batch } from "/static/desk/batch.js";
import { takeDumps } from "/static/desk/dumps.js";
import { question } from "/static/desk/question.js";
import { begun, say } from "/static/desk/say.js";
import { previewed, previewOf } from "/static/desk/write_recipe.js";

const at = (id) => document.getElementById(id);
begun();

function fieldsOf(form) {
  const fields = form.elements.roles ? { roles: [] } : {};
  for (const [name, value] of new FormData(form)) {
    if (["roles", "people", "locked"].includes(name)) (fields[name] ??= []).push(value);
    else if (name === "active") fields.active = value === "true";
    else if (!(value instanceof File)) fields[name] = value;
  }
  return fields;
}

async function plain(file, refusal) { // byte for byte, including a byte order mark, or not at all
  const bytes = await file.arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error(`${file.name}: ${refusal}`);
  }
}

async function folderOf(chosen, refusal) { // the files of the form's folders, by their paths below the chosen folder
  const wanted = [...chosen].map((file) => [file.webkitRelativePath.split("/").slice(1).join("/"), file])
    .filter(([path]) => /^(annotation_json|annotation_csv|data_splits|metadata|task_graphs)\/\w+\.(json|csv)$/.test(path));
  const files = await Promise.all(wanted.map(async ([path, file]) => [path, await plain(file, refusal)]));
  return { name: chosen[0].webkitRelativePath.split("/")[0].slice(0, 40), files: Object.fromEntries(files) };
}

async function send(form) {
  const { send: url, then, show } = form.dataset;
  if (form.id === "dump") return takeDumps(form, at("held").files);
  let body = fieldsOf(form);
  if (form.id === "collection") body = await folderOf(at("folder").files, form.dataset.refusal);
  if (form.id === "upload") {
    const [file] = at("file").files;
    body = { file_name: file.name.replaceAll(" ", "_"), text: await file.text() };
  }
  if (form.id === "study-plan") {
    const [file] = at("planned").files;
    body = { ...JSON.parse(await plain(file, "UTF-8")), ...body };
  }
  if (form.id === "written") {
    const { title, form: kind, words } = body;
    body = { file_name: `${title.trim().toLowerCase().replaceAll(" ", "_")}.${kind}`, text: words };
    if (kind === "txt") return previewOf(body);
  }
  if (form.id === "preview") body = previewed(form);
  if ("op" in form.dataset) body.op_id = newId();
  const answer = await ask(url, { body, timeout: form.id === "collection" ? 300_000 : patience(url) });
  if (answer.unusable?.length) return say(answer.unusable.join("\n"));
  if (show && answer[show]) return result(form.dataset, answer[show]);
  if (then === "sign-in") {
    at("invite").hidden = true;
    at("sign-in").hidden = false;
    at("pseudonym").value = answer.pseudonym;
    at("password").focus();
    return null;
  }
  return then ? location.assign(then) : location.reload();
}

const patience = (url) => (/\/(capture|study)$/.test(url) ? 90_000 : 8000); // devices need some time

async function post(button) {
  const { post: url, then, show, body, wait, ask: title, means, reason } = button.dataset;
  const said = body ? JSON.parse(body) : {};
  if (title) { // `data-reason` is the body's field for the reason
    const why = await question({ title, means, yes: button.textContent, reason: Boolean(reason) });
    if (why === null) return null;
    if (reason) said[reason] = why;
  }
  if ("keep" in button.dataset) said.op_id = newId();
  say(wait ?? "");
  const answer = await ask(url, { method: "POST", body: said, timeout: patience(url) });
  if (show) return result(button.dataset, answer[show]);
  return location.assign(then);
}

function result({ show, title, hint }, value) {
  const link = { code: `/t/pair#${value}`, card: `/q#${value}`, invite: `/desk/sign-in#${value}` }[show];
  at("result-title").textContent = title;
  at("result-text").textContent = show === "code" ? value : `${location.origin}${link}`;
  at("result-hint").textContent = hint;
  at("result-qr").replaceChildren(code(link));
  at("result").showModal();
}

const code = (link) => drawn(qrOfLink(location.origin + link), 6); // drawn here, so that no secret is in a requested address

for (const place of document.querySelectorAll("[data-qr]")) place.append(code(place.dataset.qr));
for (const form of document.querySelectorAll("form[data-send]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say("");
    const pressed = form.querySelector("button");
    pressed.disabled = true; // a slow request is sent only once
    send(form).catch((error) => say(error.message)).finally(() => { pressed.disabled = false; });
  });
}
for (const chosen of document.querySelectorAll("input[data-put]")) { // a picture is sent unchanged and comes back small
  chosen.addEventListener("change", () => {
    say("");
    ask(chosen.dataset.put, { method: "PUT", raw: chosen.files[0], timeout: 60_000 }).then(() => location.reload()).catch((error) => say(error.message));
  });
}
for (const form of document.querySelectorAll("form[data-open]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.assign(`${form.dataset.open}?${new URLSearchParams(new FormData(form))}`);
  });
}
for (const button of document.querySelectorAll("button[data-post]")) {
  button.addEventListener("click", () => {
    button.disabled = true; // a slow request is sent only once
    post(button).catch((error) => say(error.message)).finally(() => { button.disabled = false; });
  });
}
async function follow(line) { // wait until a slow job is over; then the page shows the result
  const state = await ask(line.dataset.follow);
  if (state.state !== "asking") return location.reload();
  line.textContent = state.said;
  return setTimeout(() => follow(line).catch((error) => say(error.message)), 500);
}

if (at("batch")) batch(at("batch"), say);
for (const line of document.querySelectorAll("[data-follow]")) follow(line).catch((error) => say(error.message));
at("result-close").addEventListener("click", () => { at("result").close(); location.reload(); });
at("print")?.addEventListener("click", () => print());
document.querySelector("main").inert = false; // a form sent before this point would be submitted by the browser

const invited = location.pathname === "/desk/sign-in" && location.hash.length > 1 && at("invite"); // not on a tablet
if (invited) {
  at("invite").hidden = false;
  at("sign-in").hidden = true;
  at("invite").elements.code.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}

const CHECKS = {
  secure: () => isSecureContext,
  storage: async () => Boolean(indexedDB) && ((await navigator.storage?.persisted?.()) || (await navigator.storage?.persist?.()) || "later"),
  worker: () => "serviceWorker" in navigator,
  wake: () => "wakeLock" in navigator,
  microphone: () => Boolean(navigator.mediaDevices?.getUserMedia),
  clock: async () => {
    const sent = performance.now();
    await ask("/api/v1/time");
    return performance.now() - sent < 500;
  },
};
for (const line of document.querySelectorAll("#doctor [data-check]")) {
  Promise.resolve(CHECKS[line.dataset.check]()).catch(() => false).then((good) => {
    const badge = line.querySelector(".badge");
    line.className = good ? "good" : "bad";
    badge.textContent = good ? at("doctor").dataset.good : at("doctor").dataset.bad;
  });
}
