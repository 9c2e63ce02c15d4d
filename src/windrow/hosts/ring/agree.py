"""How the nodes of a ring end a round together: the state of all of it counts, or of none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windrow.hosts.ring.links import TcpLinks
from windrow.hosts.ring.store import Manifest, Place, Store
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.sliced_join import HEAD

WRITTEN = "written"


def agreed(
    links: TcpLinks, store: Store, number: int, identity: Mapping[str, Any], written: Mapping[str, Place]
) -> str:
    """Tell the head what this node has written; returns the token of the manifest that has it."""
    if links.node != HEAD:
        report(links, {WRITTEN: written})
        return str(links.receive_commit().values["token"])
    nodes = tuple(each[WRITTEN] for each in reports(links, {WRITTEN: written}))
    made: Manifest = store.commit(number, identity, nodes)
    for node in range(1, links.nodes):
        links.send(node, Message(Kind.COMMIT, values={"token": made.token}))
    return made.token


def report(links: TcpLinks, values: Mapping[str, Any]) -> None:
    """Tell the head what this node has done."""
    links.send(HEAD, Message(Kind.COMMIT, sender=links.node, values=values))


def reports(links: TcpLinks, own: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """At the head: what all nodes report, once they all have."""
    by_node = {HEAD: own}
    while len(by_node) < links.nodes:
        message = links.receive_commit()
        by_node[message.sender] = message.values
    return [by_node[node] for node in range(links.nodes)]
