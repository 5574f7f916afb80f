"""One file per figure of chapter 3."""
