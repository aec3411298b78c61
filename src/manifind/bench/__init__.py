"""Benchmarks: tasks, the runner, results, reports; `paper` holds the paper's tables and figures."""
