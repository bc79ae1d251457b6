"""`tricks`: makes a training project that holds just the techniques you pick."""


class UserError(Exception):
    """What the person at the command line can put right, in one sentence."""


class Interrupted(Exception):
    """The person left at a prompt: nothing was written."""
