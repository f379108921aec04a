// Sign-in: a tile with the pseudonym, then six digits; or a QR card.

import { app, go, signedIn } from "/static/main.js";
import { button, h, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { number, t } from "/static/core/words.js";
import { bar, tour } from "/static/views/frame.js";

const DIGITS = 6;

export async function load(card) {
  if (!location.pathname.startsWith("/q")) return ask("/api/v1/people");
  try {
    await ask("/api/v1/sign-in/card", { body: { card } });
  } catch (error) {
    return { refused: error.message };
  }
  return signedIn(); // goes on to another screen
}

export function open(_, { people, refused }) {
  if (refused) {
    show("sign-in", bar("", t("sign_in.title")), h("main", { class: "plain" }, h("p", { class: "warning", role: "alert" }, refused),
      button(t("sign_in.tiles"), () => go("/t/sign-in", { replace: true }), { class: "primary" })));
    return;
  }
  show("sign-in", bar("", t("sign_in.title")), h("main", { class: "plain wide" },
    tour("sign_in"),
    h("p", {}, t("sign_in.who")),
    people.length
      ? h("div", { class: "tiles-of-people" }, people.map((person) => button(person.pseudonym, () => pin(person), { class: "person" })))
      : h("p", { class: "empty of-people" }, t("sign_in.nobody")),
    h("p", { class: "hint" }, t("sign_in.card"))));
}

function pin(person) {
  let typed = "";
  const dots = h("p", { class: "pin-dots", role: "status" });
  const message = h("p", { class: "pin-said", role: "alert" }); // its space is reserved, so that the keys do not move
  const draw = () => {
    dots.replaceChildren(...Array.from({ length: DIGITS }, (_, place) => h("i", { class: place < typed.length ? "typed" : "" })));
    dots.setAttribute("aria-label", t("sign_in.typed", { count: typed.length }));
  };
  const type = async (digit) => {
    if (typed.length >= DIGITS) return;
    typed += digit;
    draw();
    if (typed.length < DIGITS) return;
    try {
      await ask("/api/v1/sign-in", { body: { person: person.id, pin: typed } });
      removeEventListener("keydown", onKey);
      await signedIn();
    } catch (error) {
      message.textContent = error.message;
      typed = "";
      draw();
    }
  };
  const back = () => { typed = typed.slice(0, -1); draw(); };
  const leave = () => { removeEventListener("keydown", onKey); go("/t/sign-in", { replace: true }); };
  const onKey = ({ key }) => (/^[0-9]$/.test(key) ? type(key) : key === "Backspace" ? back() : null);
  addEventListener("keydown", onKey);
  app.leave = () => removeEventListener("keydown", onKey);
  draw();
  show("pin", bar("", t("sign_in.pin", { name: person.pseudonym })), h("main", { class: "plain pin" }, tour("pin"), dots, message,
    h("div", { class: "pin-pad" }, ["1", "2", "3", "4", "5", "6", "7", "8", "9"].map((digit) => key(digit, type)),
      button(t("back"), leave, { class: "key small" }), key("0", type), button("", back, { class: "key icon icon-erase alone", "aria-label": t("sign_in.erase") }))));
}

// Not `tap`: the same digit may be entered twice within 400 ms.
const key = (digit, type) => h("button", { type: "button", class: "key", onclick: () => type(digit) }, number(Number(digit)));
