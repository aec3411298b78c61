"""GRAD-Net: layers, losses, training, the estimator, refits."""
