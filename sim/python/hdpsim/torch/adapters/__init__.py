"""Attention of HDP in models of others: each adapter is a page, and imports its library only when it is called."""
