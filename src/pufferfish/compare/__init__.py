"""The noise of every mechanism, side by side, before anything is spent."""
