"""Exponential families: from one noisy sum to a posterior (thesis chapter 4, appendix B)."""
