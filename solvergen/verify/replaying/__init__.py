"""Keeps what was found, and runs it again.

A finding is written to a file (``file``) that holds its run as plain data (``data``), the arrays in it as
text with every bit (``arrays``), and the text of its spec (``spec``). ``replay`` runs such a file, and
``reproducer`` says how to, with code to paste.

See docs/verification.md.
"""
