"""Figures of this paper."""
