// The acoustic slate, if lab.toml enables it: its chirps show that a camera's video belongs to this recording.

const LONGEST_MS = 4000;

export async function playSlate({ bundle, id }) { // a recording never waits for a slate that cannot be played
  if (!bundle.slate) return;
  const sound = new Audio(`/api/v1/slate/${id}`);
  const over = new Promise((resolve) => { sound.onended = resolve; });
  const late = new Promise((resolve) => { setTimeout(resolve, LONGEST_MS); }); // `play` waits for the server without a limit
  await Promise.race([sound.play().then(() => over, () => null), late]);
}
