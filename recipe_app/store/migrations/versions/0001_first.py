"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "attempt",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("blocked_until_utc_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_attempt")),
    )
    op.create_table(
        "credential",
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("person", "kind", name=op.f("pk_credential")),
    )
    op.create_table(
        "device",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kitchen", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("secure", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device")),
    )
    op.create_table(
        "device_key",
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("device", name=op.f("pk_device_key")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_device_key_token_hash")),
    )
    op.create_table(
        "error",
        sa.Column("recording", sa.Text(), nullable=False),
        sa.Column("error_id", sa.Text(), nullable=False),
        sa.Column("node", sa.Integer(), nullable=True),
        sa.Column("categories", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("planned", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("host_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("recording", "error_id", name=op.f("pk_error")),
    )
    op.create_table(
        "kitchen",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kitchen")),
        sa.UniqueConstraint("name", name=op.f("uq_kitchen_name")),
    )
    op.create_table(
        "login",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("csrf", sa.Text(), nullable=False),
        sa.Column("desk", sa.Boolean(), nullable=False),
        sa.Column("expires_utc_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_login")),
    )
    op.create_table(
        "op",
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("op_id", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("clock", sa.Text(), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("host_ns", sa.BigInteger(), nullable=False),
        sa.Column("uncertainty_ns", sa.BigInteger(), nullable=False),
        sa.Column("basis", sa.Text(), nullable=False),
        sa.Column("received_host_ns", sa.BigInteger(), nullable=False),
        sa.Column("received_utc_ns", sa.BigInteger(), nullable=False),
        sa.Column("prev", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_op")),
        sa.UniqueConstraint("device", "seq", name=op.f("uq_op_device")),
        sa.UniqueConstraint("op_id", name=op.f("uq_op_op_id")),
    )
    op.create_index("ix_op_subject_n", "op", ["subject", "n"], unique=False)
    op.create_table(
        "person",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("pseudonym", sa.Text(), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_person")),
        sa.UniqueConstraint("pseudonym", name=op.f("uq_person_pseudonym")),
    )
    op.create_table(
        "recipe",
        sa.Column("graph_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("graph", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("graph_hash", name=op.f("pk_recipe")),
        sa.UniqueConstraint("name", "version", name=op.f("uq_recipe_name")),
    )
    op.create_table(
        "recording",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=True),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("kitchen", sa.Text(), nullable=False),
        sa.Column("recipe", sa.Text(), nullable=False),
        sa.Column("graph_hash", sa.Text(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("display", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("steps_done", sa.Integer(), nullable=False),
        sa.Column("errors", sa.Integer(), nullable=False),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("conflicts", sa.Integer(), nullable=False),
        sa.Column("created_utc_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recording")),
    )
    op.create_index("ix_recording_person", "recording", ["person"], unique=False)
    op.create_table(
        "ticket",
        sa.Column("code_hash", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("expires_utc_ns", sa.BigInteger(), nullable=False),
        sa.Column("used", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("code_hash", name=op.f("pk_ticket")),
    )
    op.create_table(
        "voice",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("recording", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_voice")),
    )
    op.create_table(
        "unfiled",
        sa.Column("n", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["n"], ["op.n"], name=op.f("fk_unfiled_n")),
        sa.PrimaryKeyConstraint("n", name=op.f("pk_unfiled")),
    )
