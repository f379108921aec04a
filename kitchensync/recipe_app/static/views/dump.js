// Saves unsent data of this tablet to a file.

import * as outbox from "/static/core/outbox.js";
import { button, h } from "/static/core/page.js";
import { asFile } from "/static/core/dump.js";
import { t } from "/static/core/words.js";

export const saveToFile = () => h("p", { class: "actions start" }, button(t("done.dump"), save, { class: "quiet", "data-key": "dump" }));

async function save() { // the browser's download
  const content = await asFile(await outbox.dump());
  const name = `kitchensync-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.json`;
  const link = h("a", { href: URL.createObjectURL(new Blob([content], { type: "application/json" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
