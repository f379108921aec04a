// Pairs this tablet with a kitchen by the desk's code and a name.

import { app, signedIn } from "/static/main.js";
import * as outbox from "/static/core/outbox.js";
import { button, h, show } from "/static/core/page.js";
import { ask } from "/static/core/server.js";
import { t } from "/static/core/words.js";
import { saveToFile } from "/static/views/dump.js";
import { bar } from "/static/views/frame.js";

export function open() {
  const given = location.pathname === "/t/pair" ? location.hash.slice(1) : "";
  const code = h("input", { id: "code", autocomplete: "off", autocapitalize: "characters", placeholder: "AB12-CD34", value: given, maxlength: "9" });
  const name = h("input", { id: "name", autocomplete: "off", maxlength: "40", value: t("pair.name.value") });
  const message = h("p", { class: "warning", role: "alert" });
  const pair = async () => {
    try {
      await ask("/api/v1/pair", { body: { code: code.value, name: name.value, secure: isSecureContext } });
      history.replaceState(null, "", "/t/choose");
      await signedIn();
    } catch (error) {
      message.textContent = error.message;
    }
  };
  show("pair", bar("", t("pair.title")), h("main", { class: "plain" },
    h("p", {}, app.me?.device ? t("pair.again", { kitchen: app.me.device.kitchen }) : t("pair.how")),
    h("div", { class: "field" }, h("label", { for: "code" }, t("pair.code")), code),
    h("div", { class: "field" }, h("label", { for: "name" }, t("pair.name")), name),
    message,
    outbox.unsent() > 0 && h("section", { class: "receipt waiting" }, h("p", {}, t("done.waiting", { count: outbox.unsent() })), saveToFile()),
    app.me?.desk && !app.me.demo && h("p", { class: "warning" }, t("pair.ends_desk")),
    !isSecureContext && h("p", { class: "warning" }, t("pair.insecure"), " ", h("a", { href: "/doctor" }, t("pair.doctor"))),
    h("p", { class: "actions" }, button(t("pair.go"), pair, { class: "primary", id: "pair" }),
      (!app.me?.device || app.me.demo) && h("a", { class: "quiet", href: "/desk/sign-in" }, t("pair.desk")))));
  (given ? document.getElementById("pair") : code).focus();
}
