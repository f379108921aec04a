// Keep the screen on while a recipe is followed; say so when the browser does not.

let lock = null;

export async function keepAwake(say) {
  if (document.visibilityState !== "visible" || lock) return;
  try {
    lock = await navigator.wakeLock.request("screen");
    say("");
    lock.addEventListener("release", () => {
      lock = null;
      say("The screen may go dark. Touch it now and then.");
      setTimeout(() => keepAwake(say), 1000);
    });
  } catch {
    say("The screen may go dark: switch off auto-lock in the tablet's settings.");
  }
}
