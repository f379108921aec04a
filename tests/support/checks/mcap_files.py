"""MCAP files read by `mcap` and by the schemas that they hold."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.reader import make_reader

Topics = dict[str, list[tuple[int, Any]]]


def read(path: Path) -> tuple[Topics, dict[str, dict[str, str]]]:
    """Return (log time, message) by topic, each made by the schema that the file holds, and its metadata."""
    topics: Topics = defaultdict(list)
    classes: dict[int, Any] = {}
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            if schema.id not in classes:
                pool = descriptor_pool.DescriptorPool()
                for one in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
                    pool.Add(one)
                assert schema.name.startswith("foxglove.") or schema.name == "kitchensync.MotionSamples"
                classes[schema.id] = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
            topics[channel.topic].append((message.log_time, classes[schema.id].FromString(message.data)))
        told = {one.name: dict(one.metadata) for one in reader.iter_metadata()}
    return topics, told
