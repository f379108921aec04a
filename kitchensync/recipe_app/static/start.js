// A part of the app that does not come (a network that blinks, a browser that stops its worker in the middle of an answer)
// would leave the page at "Loading" for good: it begins anew.

addEventListener("error", ({ target }) => {
  if (target instanceof HTMLScriptElement) setTimeout(() => location.reload(), 1500);
}, true);
