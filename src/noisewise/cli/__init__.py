"""The command line: one file per verb; the only room that may see both halves."""
