"""Compiled and vectorised inner loops: arrays in, arrays out."""
