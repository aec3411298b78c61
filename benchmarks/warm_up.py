"""What a process does before a clock starts."""

from __future__ import annotations


def load_libraries() -> None:
    """A fit of next to nothing: torch and faiss load parts of themselves when they are first used."""
    from landmark_cloud import make_landmark_cloud

    from manifind.model.estimator import GradNet

    GradNet(layers=(8, 8), max_steps=1, guard=False, random_state=0).fit(make_landmark_cloud(100, 8).descriptors)
