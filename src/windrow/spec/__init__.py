"""What a query declares: options, rules of promises, functions, lengths, time, and the names of our own columns."""
