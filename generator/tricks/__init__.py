"""`tricks`: makes a training project that holds just the techniques you pick."""

__version__ = "0.1.0"  # the one version number; a release's git tag is "v" and this


class UserError(Exception):
    """What the person at the command line can put right, in one sentence."""


class Interrupted(Exception):
    """The person left at a prompt: nothing was written."""
