"""How the nodes of a ring end a round together: the state of all of it counts, or of none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windrow.hosts.ring.links import TcpLinks
from windrow.hosts.ring.store import Manifest, Place, Store
from windrow.operators.ring.messages import Kind, Message
from windrow.operators.ring.sliced_join import HEAD


def agreed(
    links: TcpLinks, store: Store, number: int, identity: Mapping[str, Any], written: Mapping[str, Place]
) -> str:
    """Tell the head what this node has written; returns the token of the manifest that has it."""
    if links.node != HEAD:
        links.send(HEAD, Message(Kind.COMMIT, sender=links.node, values={"written": written}))
        return str(links.receive_commit().values["token"])
    by_node: dict[int, Mapping[str, Place]] = {HEAD: written}
    while len(by_node) < links.nodes:
        message = links.receive_commit()
        by_node[message.sender] = message.values["written"]
    made: Manifest = store.commit(number, identity, tuple(by_node[node] for node in range(links.nodes)))
    for node in range(1, links.nodes):
        links.send(node, Message(Kind.COMMIT, values={"token": made.token}))
    return made.token
