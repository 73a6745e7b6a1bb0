"""Sends the numbers of Tessera's runs to experiment trackers, by the trackers' own libraries."""
