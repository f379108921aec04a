"""Every table of the app's database.

`op` is the log: rows are only added. Derived tables can be rebuilt at any time (`projections.rebuild`). The tables
for access (`credential`, `login`, `ticket`, `attempt`) hold hashes that change and expire, and are not in the log.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
    }
)

op = Table(
    "op",
    metadata,
    Column("n", BigInteger, primary_key=True, autoincrement=False),  # 1, 2, 3 ... without a gap
    Column("op_id", Text, nullable=False, unique=True),
    Column("device", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),  # counted by the device; below 0 if it used a number twice
    Column("actor", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),  # JSON; empty once it was destroyed
    # JSON: the client's statements about time, unchanged, and its `seq` if that was reused; empty once destroyed
    Column("clock", Text, nullable=False),
    Column("salt", Text, nullable=False),  # empty once body and clock were destroyed
    Column("content_hash", Text, nullable=False),  # of salt, body and clock; the chain covers this hash only
    Column("seen", BigInteger, nullable=False),  # the last n of the subject that the device knew
    Column("host_ns", BigInteger, nullable=False),  # when it was done, on the capture clock
    Column("uncertainty_ns", BigInteger, nullable=False),
    Column("basis", Text, nullable=False),
    Column("received_host_ns", BigInteger, nullable=False),
    Column("received_utc_ns", BigInteger, nullable=False),
    Column("prev", Text, nullable=False),
    Column("hash", Text, nullable=False),
    UniqueConstraint("device", "seq"),
    Index("ix_op_subject_n", "subject", "n"),
)

unfiled = Table(
    "unfiled",  # operations that are not yet in the events of their recording's folder
    metadata,
    Column("n", BigInteger, ForeignKey("op.n"), primary_key=True, autoincrement=False),
)

person = Table(
    "person",
    metadata,
    Column("id", Text, primary_key=True),
    Column("pseudonym", Text, nullable=False, unique=True),
    Column("roles", Text, nullable=False),  # JSON list
    Column("active", Boolean, nullable=False),
)

kitchen = Table(
    "kitchen",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

device = Table(
    "device",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("kitchen", Text, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("secure", Boolean, nullable=True),  # secure context, as the device reported at pairing
)

recipe = Table(
    "recipe",
    metadata,
    Column("graph_hash", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("graph", Text, nullable=False),  # graph.json
    UniqueConstraint("name", "version"),
)

recording = Table(
    "recording",
    metadata,
    Column("id", Text, primary_key=True),
    Column("folder", Text, nullable=True),
    Column("person", Text, nullable=False),
    Column("kitchen", Text, nullable=False),
    Column("recipe", Text, nullable=False),
    Column("graph_hash", Text, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("display", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("steps_done", Integer, nullable=False),
    Column("errors", Integer, nullable=False),
    Column("planned", Integer, nullable=False),
    Column("conflicts", Integer, nullable=False),
    Column("created_utc_ns", BigInteger, nullable=False),
    Column("last_n", BigInteger, nullable=False),
    Index("ix_recording_person", "person"),
)

error = Table(
    "error",
    metadata,
    Column("recording", Text, primary_key=True),
    Column("error_id", Text, primary_key=True),
    Column("node", Integer, nullable=True),
    Column("categories", Text, nullable=False),  # JSON list of category numbers
    Column("origin", Text, nullable=False),
    Column("planned", Boolean, nullable=False),
    Column("outcome", Text, nullable=False),  # empty until the review
    Column("description", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("host_ns", BigInteger, nullable=True),
)

credential = Table(
    "credential",
    metadata,
    Column("person", Text, primary_key=True),
    Column("kind", Text, primary_key=True),  # pin, password, card
    Column("hash", Text, nullable=False),
)

device_key = Table(
    "device_key",
    metadata,
    Column("device", Text, primary_key=True),
    Column("token_hash", Text, nullable=False, unique=True),
)

login = Table(
    "login",
    metadata,
    Column("token_hash", Text, primary_key=True),
    Column("person", Text, nullable=False),
    Column("device", Text, nullable=False),
    Column("desk", Boolean, nullable=False),
    Column("expires_utc_ns", BigInteger, nullable=False),
)

ticket = Table(
    "ticket",  # invites and pairing codes: used once, short-lived
    metadata,
    Column("code_hash", Text, primary_key=True),
    Column("purpose", Text, nullable=False),  # invite, pair
    Column("subject", Text, nullable=False),  # the person invited, or the kitchen of the device
    Column("expires_utc_ns", BigInteger, nullable=False),
    Column("used", Boolean, nullable=False),
)

attempt = Table(
    "attempt",
    metadata,
    Column("key", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("blocked_until_utc_ns", BigInteger, nullable=False),
)

voice = Table(
    "voice",  # voice notes, by the hash of their bytes
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("recording", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

picture = Table(
    "picture",  # pictures of recipes, JPEG, by the hash of their bytes
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

DERIVED = (error, recording, recipe, device, kitchen, person)
"""Tables derived from the log, in an order in which they can be emptied."""
