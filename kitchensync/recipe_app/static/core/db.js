// The tablet's storage: IndexedDB. Once a promise resolves, its data is in the database.

const STORES = {
  meta: "key", // this tablet, its person, its sequence counter
  outbox: "seq", // operations without a receipt; they never expire
  refused: "seq", // operations that the server refused, and why
  bundles: "recording", // everything that a recording needs offline, with its accepted operations
  sounds: "sha256", // unsent voice notes
};
let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("kitchensync", 1);
    request.onupgradeneeded = () => {
      for (const [name, keyPath] of Object.entries(STORES)) request.result.createObjectStore(name, { keyPath });
    };
    request.onsuccess = () => {
      request.result.onclose = () => { opened = null; };
      resolve(request.result);
    };
    request.onerror = () => {
      opened = null;
      reject(request.error);
    };
  });
  return opened;
}

// Begins a transaction; reconnects if the browser closed the connection (after the tablet slept).
async function within(use, ...how) {
  const database = await open();
  let transaction;
  try {
    transaction = database.transaction(...how);
  } catch (error) {
    if (error.name !== "InvalidStateError") throw error;
    opened = null;
    transaction = (await open()).transaction(...how);
  }
  return use(transaction);
}

// Runs `act` in one transaction over the stores; resolves with its result once everything is saved.
export const change = (names, act) => within((transaction) => new Promise((resolve, reject) => {
  let result;
  transaction.oncomplete = () => resolve(result);
  transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error("not kept"));
  const stores = Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)]));
  act(stores, (value) => { result = value; });
}), names, "readwrite", { durability: "strict" });

export const read = (name, key) => within((transaction) => new Promise((resolve, reject) => {
  const store = transaction.objectStore(name);
  const request = key === undefined ? store.getAll() : store.get(key);
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
}), [name]);

export const put = (name, value) => change([name], (stores) => stores[name].put(value));
