"""Data sets: the catalogue, downloads, labelled sets, landmark sets, synthetic sets."""
