"""The commands of the recipe app: `graph`, `app`, `adopt`, `backup`, `restore`, `take-dump`, `annotations`."""
