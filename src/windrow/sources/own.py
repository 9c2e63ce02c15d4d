"""The sources that Windrow reads itself."""

from __future__ import annotations

from windrow.sources.files import Files
from windrow.sources.kafka.topic import Topic

Own = Files | Topic
OWN = (Files, Topic)
