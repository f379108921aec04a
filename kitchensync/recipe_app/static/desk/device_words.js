// Texts about cameras and disk for the live pages of one recording and of all.

import { t } from "/static/core/words.js";

export const rounded = (value) => Math.round(value * 10) / 10;

export function ofCamera({ battery_percent: percent, minutes_left: minutes }) {
  return [...(percent === null ? [] : [t("live.battery", { percent })]), ...(minutes === null ? [] : [t("live.card", { minutes: Math.round(minutes) })])];
}

export function ofDisk(disk) {
  if (!disk?.free_bytes) return "";
  const gigabytes = rounded(disk.free_bytes / 1e9), minutes = disk.minutes_left;
  return minutes === null ? t("live.disk_hours", { gigabytes }) : t("live.disk", { gigabytes, minutes: Math.round(minutes) });
}
