"""`python -m generator` is `tricks`."""

from generator.cli import main

main()
