// Caches the shell on the tablet: all pages under /t are one page that opens without network. Version {{ version }}.
const CACHE = "kitchensync-{{ version }}";
const PICTURES = "kitchensync-pictures"; // of recipes: the content of a hashed address never changes
const FILES = {{ files | tojson }};

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...FILES, "/t/choose"].map((url) => new Request(url, { cache: "reload" })))).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((names) => Promise.all(names.filter((name) => name !== CACHE && name !== PICTURES).map((name) => caches.delete(name)))).then(() => clients.claim()));
});

addEventListener("fetch", (event) => {
  const { pathname } = new URL(event.request.url);
  if (event.request.method !== "GET") return;
  if (pathname.startsWith("/t/") || pathname.startsWith("/q")) event.respondWith(page(event.request));
  else if (pathname.startsWith("/static/") || pathname.startsWith("/locales/")) event.respondWith(kept(event.request));
  else if (pathname.startsWith("/api/v1/recipe-pictures/")) event.respondWith(picture(event.request));
});

async function page(request) { // fresh if the server answers quickly, else from the cache
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(1500) });
    if (answer.ok) {
      await (await caches.open(CACHE)).put("/t/choose", answer.clone());
      return answer;
    }
  } catch {
    // no network: use the cached shell
  }
  return (await caches.match("/t/choose")) ?? Response.error();
}

async function kept(request) {
  return (await caches.match(request, { ignoreSearch: true })) ?? fetch(request);
}

async function picture(request) {
  const cache = await caches.open(PICTURES);
  const there = await cache.match(request);
  if (there) return there;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request, answer.clone());
  return answer;
}
