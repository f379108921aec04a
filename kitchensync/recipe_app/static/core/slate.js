// The acoustic slate, where lab.toml wants one: by its chirps a camera's film is found to be of this recording.

const LONGEST_MS = 4000;

export async function playSlate({ bundle, id }) { // a recording never waits for one that cannot be played
  if (!bundle.slate) return;
  const sound = new Audio(`/api/v1/slate/${id}`);
  const over = new Promise((resolve) => { sound.onended = resolve; });
  const late = new Promise((resolve) => { setTimeout(resolve, LONGEST_MS); }); // `play` waits for the server, for ever
  await Promise.race([sound.play().then(() => over, () => null), late]);
}
