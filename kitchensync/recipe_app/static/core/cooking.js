// The screen while cooking: dark and safe for cameras, or light where the sun shines in; chosen on the checklist.

export const LOOKS = ["dark", "light"];
export const look = () => (localStorage.getItem("cooking") === "light" ? "light" : "dark");
export const setLook = (name) => localStorage.setItem("cooking", name);
