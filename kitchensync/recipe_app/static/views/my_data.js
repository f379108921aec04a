// The stored data of a recording and the consent; the person can withdraw here at any time.

import { button, h } from "/static/core/page.js";
import { t } from "/static/core/words.js";
import { living } from "/static/views/error_form.js";
import { sheet } from "/static/views/frame.js";
import { withdraw } from "/static/views/withdraw.js";

export const myData = (recording, look = "link") => button(t("data.mine"), () => show(recording), { class: look, "data-key": "my-data" });

function show(recording) {
  const { consent, voices, withdrawn } = recording.state;
  const scopes = consent?.accepted ? consent.scopes ?? [] : [];
  sheet(t("data.mine"), (close) => [
    h("p", {}, t("data.kept", { entries: recording.known.length, errors: living(recording).filter((error) => !error.planned).length, voices: voices.length })),
    h("p", {}, t(!consent ? "data.not_asked" : consent.accepted ? "data.agreed" : "data.refused")),
    scopes.length > 0 && h("ul", {}, scopes.map((scope) => h("li", {}, t(`consent.scope.${scope}`)))),
    h("p", { class: "actions" }, button(t("back"), close, { class: "quiet" }),
      !withdrawn && button(t("withdraw"), () => { close(); withdraw(recording); }, { class: "quiet" })),
  ].filter(Boolean));
}
