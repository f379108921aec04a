"""Films of recordings for the browser: small ones of what was cooked, newest pictures of what is cooked now."""
