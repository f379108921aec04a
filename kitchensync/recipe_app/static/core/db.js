// The tablet's own memory: IndexedDB. A promise that resolves has its data in the browser's database.

const STORES = {
  meta: "key", // this tablet, its person, its sequence counter
  outbox: "seq", // operations without a receipt; nothing expires
  refused: "seq", // operations that the server will never take, and why
  bundles: "recording", // all that a recording needs offline, with its accepted operations
  sounds: "sha256", // voice notes that wait to be sent
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

// Begin a transaction. A browser may take a page's connection away (a tablet that slept): then it is made once more.
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

// Run `act` in one transaction over the stores; resolve with what it returned once all of it is kept.
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
