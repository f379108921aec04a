// Reloads the page if a part of the app does not load (a short network outage, a worker stopped by the browser): otherwise
// the page would show "Loading" for ever.

addEventListener("error", ({ target }) => {
  if (target instanceof HTMLScriptElement) setTimeout(() => location.reload(), 1500);
}, true);
