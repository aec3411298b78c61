"""A child process that crashes, hangs, swells, floods or lies costs its call, and never the process that called it."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from manifind.errors import FileFormatError, GraphError, InputError, ManifindError
from manifind.progress import Progress
from manifind.worker import Reply, Worker, WorkerError, call

FUNCTIONS = """
import json, os, signal, subprocess, sys, time
import numpy as np
from manifind.errors import FileFormatError, GraphError, InputError
from manifind.progress import Progress
from manifind.worker import Reply

class OwnError(GraphError): pass
ERRORS = {"input": InputError, "file": FileFormatError, "own": OwnError}

def echo(**values): return values
def pid(): return os.getpid()
def environment(): return dict(os.environ)
def arrays(**shapes):
    return Reply(list(shapes), {name: np.arange(np.prod(s), dtype=np.float32).reshape(s) for name, s in shapes.items()})
def many_kinds():
    kinds = {"text": np.array(["ü", "猫"]), "bytes": np.array([b"a", b"bc"]), "bool": np.array([True, False])}
    kinds["none"] = np.empty((0, 4))
    return Reply(None, {**kinds, "columns": np.arange(6).reshape(2, 3).T, "scalar": np.float64(3.5)})
def objects(): return Reply(None, {"a": np.array([{}, None])})
def late_failure():
    class Source:
        shape, dtype = (4 << 20, 2), np.dtype("f8")
        def __getitem__(self, rows):
            if rows.start: raise FileFormatError("the second half is damaged", "copy it again")
            return np.zeros((rows.stop - rows.start, 2))
    return Reply(None, {"a": Source()})
def raises(name): raise ERRORS[name]("what is wrong", "what to do")
def fails(): return {}["missing"]
def leaves(): sys.exit(3)
def dies(number): os.kill(os.getpid(), number)
def ends(): print("the reason why", file=sys.stderr, flush=True); os._exit(3)
def hangs(): time.sleep(1000)
def hangs_with_child():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    print(child.pid, file=sys.stderr, flush=True)
    time.sleep(1000)
def spins(): sum(range(10**15))
def swells(): return len(bytearray(8 << 30))
def prints():
    print("noise"); os.system("echo noise"); sys.stdin.read(); print("x" * 10_000_000, file=sys.stderr)
    return "quiet"
def reports(n, listener):
    for done in range(n + 1): listener(Progress("work", done, n, "ü"))
    listener(Progress("more", 0, 5))
    return "done"
def self_containing():
    value = []; value.append(value); return value
def odd_values(): return {"number": np.int64(3), "text": sys}

def raw(*messages):
    for fd in range(3, 10):
        try: os.write(fd, b"".join(messages))
        except OSError: pass
    time.sleep(1000)
def floods(): raw(b"x" * 200_000)
def no_json(): raw(b"{nonsense\\n")
def deep(): raw(b"[" * 50_000 + b"\\n")
def no_answer(): raw(b"[1, 2]\\n")
def lies(shape, dtype): raw(json.dumps({"value": 1, "arrays": {"a": [dtype, shape]}}).encode() + b"\\n")
def too_long_a_piece(): raw(b'{"value": 1, "arrays": {"a": ["<f4", [2]]}}\\n{"piece": 9}\\n123456789')
def unknown_error(): raw(b'{"error": "os", "problem": "p", "hint": "h"}\\n')
def bad_progress(): raw(b'{"progress": [1]}\\n')
"""


@pytest.fixture(autouse=True)
def functions(tmp_path, monkeypatch):
    (tmp_path / "functions.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))


def test_values_come_back_as_json_and_arrays_as_they_were():
    with Worker() as worker:
        assert worker.call("functions:echo", {"a": [1, None, "ü\ud800"], "b": 2.5}).value == {
            "a": [1, None, "ü\ud800"],
            "b": 2.5,
        }
        reply = worker.call("functions:arrays", {"x": [3, 4], "y": [5]})
        assert reply.value == ["x", "y"]
        assert np.array_equal(reply.arrays["x"], np.arange(12, dtype=np.float32).reshape(3, 4))
        assert reply.arrays["y"].shape == (5,)
        kinds = worker.call("functions:many_kinds", {}).arrays
    assert kinds["text"].tolist() == ["ü", "猫"]
    assert kinds["bytes"].tolist() == [b"a", b"bc"]
    assert kinds["bool"].tolist() == [True, False]
    assert kinds["columns"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert kinds["scalar"] == 3.5
    assert kinds["none"].shape == (0, 4)


def test_what_json_cannot_hold_travels_as_number_or_text():
    value = call("functions:odd_values", {}).value
    assert value["number"] == 3
    assert value["text"].startswith("<module")


def test_a_large_array_comes_in_pieces():
    reply = call("functions:arrays", {"x": [9_000_000]}, max_bytes=36_000_000)
    assert np.array_equal(reply.arrays["x"], np.arange(9_000_000, dtype=np.float32))


def test_progress_reaches_the_listener_and_not_more_often_than_people_can_read():
    reports = []
    assert call("functions:reports", {"n": 100_000}, listener=reports.append).value == "done"
    assert reports[0] == Progress("work", 0, 100_000, "ü")
    assert reports[-2:] == [Progress("work", 100_000, 100_000, "ü"), Progress("more", 0, 5)]
    assert len(reports) < 10_000


@pytest.mark.parametrize(("name", "cls"), [("input", InputError), ("file", FileFormatError), ("own", GraphError)])
def test_an_error_of_ours_is_raised_here_as_what_it_was(name, cls):
    with Worker() as worker:
        first = worker.call("functions:pid", {}).value
        with pytest.raises(cls) as caught:
            worker.call("functions:raises", {"name": name})
        assert type(caught.value) is cls
        assert (caught.value.problem, caught.value.hint) == ("what is wrong", "what to do")
        assert worker.call("functions:pid", {}).value == first, "the child is well, and goes on"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("fails", "KeyError: 'missing' (functions.py, line"),
        ("leaves", "SystemExit: 3 (functions.py, line"),
        ("missing", "AttributeError: module 'functions' has no attribute"),
        ("self_containing", "ValueError: Circular reference"),
    ],
)
def test_any_other_exception_is_told_with_its_place(function, reason):
    with pytest.raises(WorkerError) as caught:
        call(f"functions:{function}", {})
    assert caught.value.problem.startswith(reason)
    assert caught.value.kind == "exception"


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        ("dies", {"number": 11}, "its process was ended by SIGSEGV"),
        ("dies", {"number": 9}, "its process was ended by SIGKILL, as the system does where memory runs out"),
        ("ends", {}, "its process ended with code 3: the reason why"),
    ],
)
def test_a_death_is_told_in_words_and_the_next_call_has_a_new_child(function, arguments, reason):
    with Worker() as worker:
        with pytest.raises(WorkerError) as caught:
            worker.call(f"functions:{function}", arguments)
        assert (caught.value.problem, caught.value.kind) == (reason, "crash")
        assert worker.call("functions:echo", {"a": 1}).value == {"a": 1}


@pytest.mark.parametrize("function", ["hangs", "spins"])
def test_a_child_that_takes_too_long_is_stopped(function):
    with Worker(seconds=3) as worker:
        with pytest.raises(WorkerError) as caught:
            worker.call(f"functions:{function}", {})
        assert (caught.value.problem, caught.value.kind) == ("stopped after 3 s, the time limit", "time")
        assert worker.call("functions:echo", {}).value == {}


def test_a_child_that_wants_too_much_memory_is_refused_it_and_goes_on():
    with Worker(memory=1 << 30) as worker:
        with pytest.raises(WorkerError, match="ran out of memory") as caught:
            worker.call("functions:swells", {})
        assert caught.value.kind == "memory"
        assert worker.call("functions:echo", {}).value == {}


def test_what_a_function_prints_or_reads_is_no_part_of_the_protocol():
    assert call("functions:prints", {}).value == "quiet"


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("floods", {}),
        ("no_json", {}),
        ("deep", {}),
        ("no_answer", {}),
        ("lies", {"shape": [1 << 40, 1 << 20], "dtype": "<f4"}),
        ("lies", {"shape": [30_000], "dtype": "<f4"}),
        ("lies", {"shape": [-1, -4], "dtype": "<f4"}),
        ("lies", {"shape": [1.5], "dtype": "<f4"}),
        ("lies", {"shape": [1], "dtype": "O"}),
        ("lies", {"shape": [1], "dtype": "nonsense"}),
        ("lies", {"shape": "many", "dtype": "<f4"}),
        ("too_long_a_piece", {}),
        ("unknown_error", {}),
        ("bad_progress", {}),
    ],
)
def test_an_answer_that_breaks_the_protocol_is_refused_before_anything_is_allocated(function, arguments):
    with Worker(seconds=60) as worker:
        with pytest.raises(WorkerError, match="sent no valid answer"):
            worker.call(f"functions:{function}", arguments, max_bytes=100_000)
        assert worker.call("functions:echo", {}).value == {}


def test_arrays_of_objects_are_not_sent():
    with pytest.raises(WorkerError):
        call("functions:objects", {}, seconds=60)


def test_an_error_after_half_of_an_array_is_still_that_error():
    with pytest.raises(FileFormatError, match="the second half is damaged"):
        call("functions:late_failure", {}, max_bytes=1 << 30)


def test_no_secret_reaches_the_child(monkeypatch):
    monkeypatch.setenv("MANIFIND_TOKEN", "secret")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    inherited = call("functions:environment", {}).value
    assert "secret" not in inherited.values()
    assert inherited["OMP_NUM_THREADS"] == "1"
    with Worker(environment={**os.environ, "OWN": "1"}) as worker:
        assert worker.call("functions:environment", {}).value["OWN"] == "1"


def test_an_exception_of_the_listener_ends_the_child_and_is_handed_on():
    def stop(progress):
        raise ManifindError("enough")

    with Worker() as worker:
        first = worker.call("functions:pid", {}).value
        with pytest.raises(ManifindError, match="enough"):
            worker.call("functions:reports", {"n": 5}, stop)
        assert worker.call("functions:pid", {}).value != first
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)


def test_closing_from_another_thread_ends_the_call_and_what_the_child_started():
    worker = Worker()
    threading.Timer(2, worker.close).start()
    with pytest.raises(WorkerError, match="SIGKILL"):
        worker.call("functions:hangs_with_child", {})
    grandchild = int(b"".join(worker._errors).split()[-1])
    assert not _is_running(grandchild)


def test_the_child_ends_with_its_parent():
    code = (
        "import threading, time\n"
        "from manifind.worker import Worker\n"
        "worker = Worker()\n"
        "print(worker.call('functions:pid', {}).value, flush=True)\n"
        "worker.call('functions:hangs', {})\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert _is_running(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    for _ in range(600):
        if not _is_running(child):
            break
        time.sleep(0.1)
    assert not _is_running(child)


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_reply_needs_no_arrays():
    assert Reply(3) == (3, {})
