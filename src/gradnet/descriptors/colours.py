"""Mean and deviation of ImageNet's colours, red, green and blue within 0 and 1: what networks are trained on."""

from __future__ import annotations

MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
