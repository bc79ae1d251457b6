"""`python -m tricks` is `tricks`."""

from tricks.cli.main import main

main()
