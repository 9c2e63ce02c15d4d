"""The values of messages as columns, one file for each format. What is wrong with one message is never another's."""
