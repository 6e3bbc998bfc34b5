"""Text protected word by word: what a classifier still learns, what an attacker recovers, what is guaranteed."""
