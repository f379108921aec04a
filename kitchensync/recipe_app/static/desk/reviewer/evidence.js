// Evidence for answers: each question has a lane and a clip; afterwards differences are ruled.

import { button, h } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { failed, say, tickPeople } from "/static/desk/say.js";

// Waits until questions are chosen; anybody here may choose them.
export async function asked(root, work, status) {
  const said = await ask(work);
  tickPeople(said.people);
  if (said.questions.length) return;
  const given = h("input", { type: "file", accept: ".json,application/json", id: "given" });
  await new Promise((resolve) => {
    const send = async () => {
      const rows = given.files[0] ? JSON.parse(await given.files[0].text()).filter((row) => row.recording === root.dataset.name && !row.dropped) : [];
      if (given.files[0] && !rows.length) throw new Error(t("evidence.others"));
      await ask(`${work}/ask`, { body: { questions: rows }, timeout: 60_000 });
      resolve();
    };
    const go = h("button", { type: "button", class: "primary", id: "ask", onclick: () => send().catch(failed) }, t("questions.ask"));
    root.replaceChildren(h("p", { class: "empty" }, t("questions.none")), h("label", {}, t("evidence.given"), given), h("p", { class: "actions start" }, go));
  });
  say("");
  root.replaceChildren(status);
}

// Lanes of questions instead of steps; after all have submitted, everybody's marks.
export function questionLanes({ facts, film }, said) {
  const clip = ({ clip_start, clip_end }) => [Math.floor(clip_start * film.fps), Math.min(film.frames, Math.ceil(clip_end * film.fps)) - 1];
  said.clips = said.questions.map(clip);
  facts.steps = said.questions.map(({ node, question }) => ({ node, label: `${node + 1}. ${question}` }));
  facts.touches = said.questions.map(({ node }) => ({ node, start: said.clips[node][0], end: said.clips[node][1], doubt: 0 }));
  for (const mark of said.marks) [mark.near] = said.clips[mark.node];
  if (!said.complete) return;
  const spans = said.standing.flatMap((one, node) => one.spans.flatMap((spans_of, person) => spans_of.map(([start, end]) => ({ node, person, start, end: end - 1 }))));
  said.marks = spans.map(({ node, person, start, end }, k) => ({ mark: `${person} ${k}`, node, start, end, checked: ["start", "end"], removed: false, missing: false }));
}

export class Questions {
  constructor(place, work, said, { film, marks, steps }) {
    Object.assign(this, { place, work, said, film, marks, steps, shown: null });
    steps.addEventListener("change", () => this.show());
  }

  show() { // the question of the selected lane; redrawn only if it changed
    const node = Number(this.steps.value);
    if (node === this.shown) return;
    this.shown = node;
    this.place.replaceChildren(this.#card(this.said.questions[node]), ...(this.said.complete ? this.#ruling() : []));
  }

  watch(node, from = 0) { // loop its clip
    const [first, last] = this.said.clips[node];
    this.film.loop = [Math.min(last, Math.max(first, from)), last];
    this.film.go(this.film.loop[0]);
    this.film.video.play().catch(() => null); // browsers refuse this before the first touch of the page
  }

  #card(item) {
    const keep = (event) => {
      this.said.answers[item.item] = event.target.value;
      this.marks.queue({ answers: { [item.item]: event.target.value } });
    };
    const answer = h("input", { id: "answer", class: "wide", maxlength: "4000", value: this.said.answers[item.item], onchange: keep });
    return h("section", { id: "question" },
      h("p", {}, h("span", { class: "badge normal" }, item.qa_type), " ", button(t("evidence.watch"), () => this.watch(item.node), { class: "quiet" })),
      h("p", { class: "question", dir: "auto" }, item.question),
      this.said.complete ? "" : h("p", { class: "field" }, h("label", { for: "answer" }, t("evidence.answer")), answer),
      h("details", {}, h("summary", {}, t("evidence.steps", { count: item.texts.length })), h("ol", {}, item.texts.map((text) => h("li", { dir: "auto" }, text)))));
  }

  #ruling() {
    const { standing, questions, to_rule, mean_iou } = this.said;
    const rule = async (item, take) => {
      await ask(`${this.work}/rule`, { body: { item, take } });
      await this.#again();
    };
    const choices = (one, node) => h("fieldset", { class: "questions" }, h("legend", {}, t("evidence.which")),
      ["first", "second", "neither"].map((take, person) => h("label", { class: "choice" },
        h("input", { type: "radio", name: `take-${node}`, value: take, disabled: person < 2 && !one.spans[person].length, onchange: () => rule(one.item, take).catch(failed) }), t(`evidence.${take}`))));
    const times = (one, person) => one.spans[person].map((span) => span.map((at) => (at / this.film.fps).toFixed(1)).join("–")).join(", ");
    const said = (one) => one.answers.map((text, person) => h("li", {}, one.spans[person].length ? [h("span", { dir: "auto" }, text), " ", h("span", { class: "hint", dir: "ltr" }, `${times(one, person)} s`)] : t("evidence.not_told")));
    const rows = standing.map((one, node) => h("li", {}, h("p", {}, h("strong", { dir: "auto" }, questions[node].question), " ", h("span", { class: "hint" }, `${t(`evidence.${one.state}`)} · ${t("evidence.iou", { iou: one.iou.toFixed(3) })}`)), h("ol", {}, said(one)), one.state === "to_rule" ? choices(one, node) : ""));
    const accept = () => ask(`${this.work}/accept`, { body: {} }).then(() => say(t("judge.accepted"))).catch(failed);
    return [h("section", { id: "standing" }, h("p", { role: "status" }, t("judge.to_rule", { count: to_rule }), " · ", t("evidence.mean", { iou: mean_iou.toFixed(3) })), h("ol", { class: "judged" }, rows),
      h("p", { class: "actions start" }, h("button", { type: "button", class: "primary", id: "keep", disabled: to_rule > 0, onclick: accept }, t("judge.accept"))))];
  }

  async #again() {
    const { standing, to_rule } = await ask(this.work);
    Object.assign(this.said, { standing, to_rule });
    this.shown = null;
    this.show();
    this.place.querySelector("input[type=radio]:enabled, #keep")?.focus(); // the next question for keyboard users
  }
}
