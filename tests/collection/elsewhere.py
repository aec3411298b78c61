"""Work that another process does: forked from one that has imported everything and computed nothing."""

from __future__ import annotations

import multiprocessing
import warnings
from contextlib import contextmanager

import faiss
import torch

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch._dynamo", "faiss", "pytest", "manifind.model.refit"])


@contextmanager
def elsewhere(work, *arguments):
    """A process that runs work(pipe, *arguments), and our end of its pipe; it is gone when the block is."""
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_quietly, args=(work, theirs, *arguments), daemon=True)
    process.start()
    theirs.close()  # so that reading our end comes to an end when the process does
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def everything_from(pipe):
    """What the other end has said and nobody has read yet, after its process has ended."""
    reported = []
    try:
        while True:
            reported.append(pipe.recv())
    except (EOFError, ConnectionResetError):
        return reported


def _quietly(work, pipe, *arguments):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # there are more processes than cores
    faiss.omp_set_num_threads(1)
    work(pipe, *arguments)
