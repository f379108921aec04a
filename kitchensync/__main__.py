"""`python -m kitchensync`: the command line."""

from kitchensync.cli import main

main(prog_name="kitchensync")
