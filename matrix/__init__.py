"""Checks of every project that can be generated: all of it as text, a chosen part of it trained."""
