"""Text protected word by word: what a classifier still learns, what an attacker reads back, what is truly promised."""
