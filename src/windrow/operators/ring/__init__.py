"""Joins of several streams with expensive conditions, spread over nodes: the ring of time slices (Wang, Rundensteiner),
and the two ways with copies of the state that it was compared with (Gu, Yu, Wang)."""
