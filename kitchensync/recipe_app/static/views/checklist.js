// The checklist before every recording: consent to one version of a text, and things that must not be visible.

import { app } from "/static/main.js";
import * as outbox from "/static/core/outbox.js";
import { LOOKS, look, setLook } from "/static/core/cooking.js";
import { DISTANCES, distance, setDistance } from "/static/core/distance.js";
import { button, h, redraw, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { playSlate } from "/static/core/slate.js";
import { afterTouches } from "/static/core/touch.js";
import { t } from "/static/core/words.js";
import { living } from "/static/views/error_form.js";
import { forOperator } from "/static/views/alarm.js";
import { said, wanted } from "/static/views/gather.js";
import { bar, footer, folderOf, open as goTo, sheet, tour } from "/static/views/frame.js";
import { myData } from "/static/views/my_data.js";

const LOOK_MS = 3000;
const LOW = 0.2;
const SECOND = "second";
const GROUPS = ["person", "room", "devices"];

export function open(recording) {
  const draw = afterTouches(paint);
  const { checklist } = recording.bundle;
  const main = h("main", { class: "plain wide" });
  const message = h("p", { role: "status" });
  const start = button(t(app.me?.capture && !folderOf(recording) ? "capture.go" : "checklist.go"), begin, { class: "primary", id: "start" });
  let people = []; // candidates for the second person: the last one on this tablet comes first
  const last = localStorage.getItem(SECOND);
  ask("/api/v1/people").then((found) => {
    people = found.people.map(({ pseudonym }) => pseudonym).filter((name) => name !== app.me?.person?.pseudonym);
    people.sort((one, other) => (other === last) - (one === last));
    draw();
  }).catch(() => null); // without network people type the name
  let second = recording.state.checked?.confirmed_by ?? "";
  show("checklist", bar("prepare", t("checklist.title"), myData(recording)), main,
    footer(message, button(t("back"), () => goTo(recording, "prepare"), { class: "quiet" }), start));

  let told = false, refusal = null; // closes the sheet of a refused start
  const isWithout = () => recording.state.capture?.action === "without"; // an operator allowed recording without devices
  const overridden = () => Boolean(recording.state.checked?.override); // an admin allowed it to begin
  const named = () => /^\S+$/.test(second.trim()); // a single word, so no first name with a surname
  const missing = () => checklist.items.filter(({ name }) => !recording.state.checklist[name]).length + (agreed() ? 0 : 1) + (named() ? 0 : 1);

  async function set(action, touch) {
    await recording.act(touch, action);
    draw();
  }

  const answer = () => recording.state.consent?.version === checklist.consent ? recording.state.consent : { accepted: false, scopes: [] }; // an answer to another version does not count
  const given = () => answer().scopes ?? [];
  const agreed = () => answer().accepted === true;
  let answered = Promise.resolve(); // each answer is the whole form, so they are sent in order
  const consent = (change, touch) => {
    answered = answered.then(() => set({ kind: "consent", body: { version: checklist.consent, language: document.documentElement.lang, accepted: agreed(), scopes: given(), ...change() } }, touch));
    return answered;
  };
  const toggled = (scope) => ({ scopes: given().includes(scope) ? given().filter((one) => one !== scope) : [...given(), scope] });

  async function begin(touch) {
    if (missing() && !overridden()) return null;
    const low = await lowBattery();
    if (low !== null && !told) return askForPower(low);
    localStorage.setItem(SECOND, second.trim());
    if (!overridden() && recording.state.phase !== "follow") await recording.act(touch, { kind: "checked", body: { version: checklist.version, confirmed_by: second.trim(), override: "" } });
    if (app.me?.capture && !folderOf(recording) && !isWithout()) return arm();
    return cook();
  }

  function cook() {
    playSlate(recording);
    return goTo(recording, "follow");
  }

  function askForPower(share) { // refused once; starting anyway is logged
    told = true;
    sheet(t("battery.title"), (close) => [h("p", {}, t("battery.text", { share })),
      h("p", { class: "actions" }, button(t("battery.anyway"), async (touch) => {
        close();
        await recording.act(touch, { kind: "note", body: { text: t("battery.noted", { share }) } });
        await begin(touch);
      }, { class: "quiet" }), button(t("back"), () => { told = false; close(); }, { class: "primary" }))]);
    return null;
  }

  async function arm() { // start the devices first; their refusals are shown as they are
    start.disabled = true;
    message.textContent = t("capture.starting");
    try {
      await outbox.drain();
      const { reasons } = await ask(`/api/v1/capture/${recording.id}`, { body: { action: "start" }, timeout: 90_000 });
      if (!reasons.length) return cook();
      refused(reasons);
    } catch (error) {
      refused([error.message]);
    }
    start.disabled = false;
    message.textContent = "";
    return null;
  }

  function goOn() {
    refusal();
    return cook();
  }

  function refused(reasons) {
    sheet(t("capture.refused"), (close) => {
      refusal = close;
      return [h("p", {}, t("capture.refused.what")), forOperator(reasons), h("p", { class: "hint" }, t("capture.without.how")),
        h("p", { class: "actions" }, button(t("failed.again"), () => { close(); arm(); }, { class: "primary" }))];
    });
  }

  function allOf(items, group) { // items that are checked together and ticked by one touch; never the consent
    const left = items.filter(({ name }) => recording.state.checklist[name] !== true);
    return left.length > 1 && button(t("checklist.all"), (touch) => recording.act(touch, ...left.map(({ name }) => ({ kind: "check", body: { item: name, checked: true } }))).then(draw),
      { class: "quiet", "data-key": `all-${group}`, title: t(`checklist.${group}`) });
  }

  const row = (key, on, label, act) => h("button", { type: "button", class: "check", role: "checkbox", "aria-checked": String(on), "data-key": key, tap: act },
    h("span", { class: on ? "box icon icon-tick alone" : "box", "aria-hidden": "true" }), h("span", {}, label));

  function paint() {
    redraw(main, tour("checklist"), recording.shown.strategy !== "normal" && h("p", { class: "banner" }, t("not_eaten")), emptyPlan(recording),
      wanted(recording).length > 0 && h("section", { class: "fetch" }, button([h("span", { class: "icon icon-basket alone", "aria-hidden": "true" }), h("span", { class: "name" }, t("gather.title")), h("span", { class: "hint" }, said(recording))],
        () => goTo(recording, "gather"), { class: "card", "data-key": "gather" })),
      h("section", {}, h("h2", {}, t("consent.title")), h("p", {}, t("consent.text")),
        row("consent", agreed(), t("consent.agree"), (touch) => consent(() => ({ accepted: !agreed() }), touch)),
        h("p", {}, t("consent.scopes")),
        (checklist.scopes ?? []).map((scope) => row(`scope-${scope}`, given().includes(scope), t(`consent.scope.${scope}`), (touch) => consent(() => toggled(scope), touch))),
        h("p", { class: "hint" }, t("consent.version", { version: checklist.consent }))),
      GROUPS.map((group) => {
        const items = checklist.items.filter((item) => item.group === group);
        return items.length > 0 && h("section", {}, h("h2", {}, t(`checklist.${group}`)), allOf(items, group), items.map(({ name }) => {
          const on = recording.state.checklist[name] === true;
          return row(name, on, t(`check.${name}`), (touch) => set({ kind: "check", body: { item: name, checked: !on } }, touch));
        }));
      }),
      h("section", {}, h("h2", {}, t("checklist.second")),
        h("div", { class: "switch wrap", role: "group", "aria-label": t("checklist.second") }, people.map((name) => button(name, () => { second = name; draw(); },
          { "aria-pressed": String(second === name), "data-key": `second-${name}` }))),
        h("div", { class: "field" }, h("label", { for: "second" }, t("checklist.second.label")),
        h("p", { class: "hint", id: "one-word" }, t("people.one_word")),
        h("input", { id: "second", maxlength: 40, "aria-describedby": "one-word", value: second, autocomplete: "off", "data-key": "second", oninput: (event) => { second = event.target.value; tell(); } }))),
      h("fieldset", { class: "distances" }, h("legend", {}, t("distance.title")), h("p", { class: "hint" }, t("distance.hint")),
        h("div", { class: "switch" }, DISTANCES.map((metres) => button(t("distance.metres", { metres }), () => { setDistance(metres); draw(); },
          { "aria-pressed": String(distance() === metres), "data-key": `metres-${metres}` })))),
      h("fieldset", { class: "distances" }, h("legend", {}, t("cooking.title")), h("p", { class: "hint" }, t("cooking.hint")),
        h("div", { class: "switch" }, LOOKS.map((name) => button(t(`cooking.${name}`), () => { setLook(name); draw(); },
          { "aria-pressed": String(look() === name), "data-key": `look-${name}` })))));
    tell();
  }

  function tell() {
    const open = missing();
    const said = open ? t("checklist.open", { count: open }) : t("checklist.complete");
    message.textContent = overridden() ? t("checklist.overridden") : said;
    start.disabled = open > 0 && !overridden();
  }
  paint();
  const looking = setInterval(() => recording.refresh().then((more) => more && (refusal && isWithout() ? goOn() : draw())).catch(() => null), LOOK_MS);
  return () => clearInterval(looking);
}

function emptyPlan(recording) { // the session is for errors, but none is planned
  const { strategy } = recording.shown;
  const planned = living(recording).some((error) => error.planned);
  return strategy !== "normal" && !planned && h("p", { class: "warning", id: "empty-plan" }, t(`plan.empty.${strategy}`));
}

async function lowBattery() { // its charge in percent, null if it is enough or unknown
  const battery = await navigator.getBattery?.().catch(() => null);
  return battery && !battery.charging && battery.level < LOW ? Math.round(battery.level * 100) : null;
}
