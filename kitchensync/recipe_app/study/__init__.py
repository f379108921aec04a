"""Who cooks what, where and when: what a study wants, and a plan that gives as much of it as there is room for."""
