"""Jobs over many files: the plan, the working folder, one partition at work, and how workers get what they need."""
