"""State that operators keep: stores of frames that write what changed and free what is past."""
