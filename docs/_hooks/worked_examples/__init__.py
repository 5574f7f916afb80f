"""Worked examples: scripts below ``docs`` that are run when the site is built.

``cells`` reads a script, ``running`` carries it out and keeps what it printed and drew as a
notebook, ``cache`` says which scripts must run again, ``pages`` turns notebooks into pages. The
hook ``docs/_hooks/gallery.py`` calls them.
"""
