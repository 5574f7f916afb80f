"""One file per figure of the partition thesis."""
