// Keeps the screen on while a recipe is followed; reports when this fails.

let lock = null;
let wanted = null;

export function keepAwake(say) {
  wanted = say;
  request();
  return () => {
    wanted = null;
    lock?.release();
  };
}

async function request() {
  if (!wanted || lock || document.visibilityState !== "visible") return;
  try {
    lock = await navigator.wakeLock.request("screen");
    lock.addEventListener("release", () => {
      lock = null;
      wanted?.(false);
      setTimeout(request, 1000);
    });
    wanted?.(true);
  } catch {
    lock = null;
    wanted?.(false);
  }
}

document.addEventListener("visibilitychange", request);
