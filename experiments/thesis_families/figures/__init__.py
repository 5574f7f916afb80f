"""One file per figure of chapter 4 and appendix B."""
