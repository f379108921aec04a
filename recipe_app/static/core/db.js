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
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

// Run `act` in one transaction over the stores; resolve with what it returned once all of it is kept.
export async function change(names, act) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(names, "readwrite", { durability: "strict" });
    let result;
    transaction.oncomplete = () => resolve(result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error ?? new Error("not kept"));
    const stores = Object.fromEntries(names.map((name) => [name, transaction.objectStore(name)]));
    act(stores, (value) => { result = value; });
  });
}

export async function read(name, key) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const store = database.transaction([name]).objectStore(name);
    const request = key === undefined ? store.getAll() : store.get(key);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export const put = (name, value) => change([name], (stores) => stores[name].put(value));
