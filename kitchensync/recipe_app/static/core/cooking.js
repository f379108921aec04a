// The cooking screen is dark (safe for cameras) or light (for sunlit kitchens), as chosen on the checklist.

export const LOOKS = ["dark", "light"];
export const look = () => (localStorage.getItem("cooking") === "light" ? "light" : "dark");
export const setLook = (name) => localStorage.setItem("cooking", name);
