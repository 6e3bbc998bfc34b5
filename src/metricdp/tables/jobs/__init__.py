"""Jobs over many files: what is to be done, who does it, and how workers get what they need."""
