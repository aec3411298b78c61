"""A process that decodes pictures and nothing else: names of files come in, pixels go out.

Each request is a JSON line, [file, longest side]. Each answer is a JSON line, and behind it the pixels it announces. A
file that makes the decoder hang, crash or eat memory takes this process with it, and no other.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

from manifind.images.decode import UnreadablePictureError, decode

MOST_MEMORY = 4 << 30  # bytes of addresses; the largest file that is allowed takes a quarter, its pixels a fifth


def main() -> None:
    """Serve until the requests end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        file, longest = json.loads(line)
        try:
            picture = decode(Path(file), longest)
            shape = picture.pixels.shape[:2]
            size = {"width": picture.width, "height": picture.height, "format": picture.format}
            read = {"sha256": picture.sha256, "said": picture.said}
            answers.write(json.dumps({"shape": shape, **size, **read}).encode() + b"\n")
            answers.write(picture.pixels.tobytes())
        except (UnreadablePictureError, OSError) as error:
            answers.write(json.dumps({"problem": getattr(error, "strerror", None) or str(error)}).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
