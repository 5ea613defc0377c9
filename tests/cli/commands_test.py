"""The commands one after the other as a user meets them, and what happens when a run is cut short.

usage: commands_test.py SCENARIO, in the environment of tests/cli (GROVE_TEST_PATH, GROVE_MPIEXEC). Exit status 77: cannot be tried here.
Everything is made in a folder of its own, which is removed in the end.
"""

import contextlib
import json
import os
import pty
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
# a few seconds in all: three flows on 16^3 cells, a small network
SIMULATE = ["simulate", "output=flows", "samples=4", "grid=16,16,16", "radius=2", "snapshots=3", "threads=2"]
TRAIN = ["train", "data=flows", "samples.train=2", "samples.validation=1", "samples.test=1", "batch=1", "model.modes=3,3,3,2", "model.width=3",
         "model.blocks=2", "threads=1", "checkpoint.epochs=1"]
ENDLESS = "epochs=1000000"


def fail(message):
    sys.exit(f"commands_test: {message}")


def command(arguments, ranks=1):
    return ([os.environ["GROVE_MPIEXEC"], "-n", str(ranks)] if ranks > 1 else []) + ["grove", *arguments]


def grove(arguments, ranks=1, exit_code=0, **options):
    """Runs to the end; returns the finished process with its output as text."""
    done = subprocess.run(command(arguments, ranks), capture_output=True, text=True, timeout=100, check=False, **options)
    if exit_code is not None and done.returncode != exit_code:
        fail(f"{done.args}: exit code {exit_code} expected, {done.returncode} found\n{done.stdout}{done.stderr}")
    return done


def start(arguments, ranks=1):
    return subprocess.Popen(command(arguments, ranks), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def expect(condition, message):
    if not condition:
        fail(message)


def one_line(done, *parts):
    """grove's part of stderr is one line that holds these parts."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("grove ")]
    expect(len(lines) == 1 and all(part in lines[0] for part in parts), f"one line with {parts} expected on stderr, found:\n{done.stderr}")


def rows(run):
    """metrics.csv without the times."""
    path = Path(run, "metrics.csv")
    return [line.split(",")[:5] for line in path.read_text().splitlines()[1:]] if path.exists() else []


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def expect_same_runs(a, b):
    expect(rows(a) == rows(b), f"losses differ:\n{rows(a)}\n{rows(b)}")
    for name in ("checkpoint/weights.safetensors", "checkpoint/optimizer.safetensors", "best/weights.safetensors"):
        expect(Path(a, name).read_bytes() == Path(b, name).read_bytes(), f"{name} of {a} and {b} differ")


def wait_until(condition, what, process=None, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if process is not None and process.poll() is not None:
            fail(f"ended before: {what}\n{process.communicate()}")
        if time.monotonic() > end:
            fail(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def pipeline():
    """Simulate, look, train, evaluate, predict: alone and on two ranks, with the same results."""
    made = grove(SIMULATE).stdout
    expect("4 of 4 flows done, 4 made now" in made, made)
    before = files("flows")
    again = grove([*SIMULATE, "--json"]).stdout
    expect(json.loads(again)["made"] == 0 and files("flows") == before, again)
    info = grove(["store", "info", "flows", "--json"]).stdout
    expect('"done"' in json.dumps(json.loads(info)) and "vorticity_z" in info, info)

    for run, ranks in (("one", 1), ("two", 2)):
        result = json.loads(grove([*TRAIN, f"run={run}", "epochs=2", "--json"], ranks).stdout)
        expect(result["epochs"] == 2 and 0 < result["train_loss"] < 2, result)
    expect_same_runs("one", "two")
    grove([*TRAIN, "run=two", "epochs=3"])  # a checkpoint of two ranks goes on with one
    grove([*TRAIN, "run=one", "epochs=3"], 2)
    expect_same_runs("one", "two")

    found = {}
    for run, ranks in (("one", 1), ("two", 2)):
        printed = json.loads(grove(["evaluate", f"run={run}", "--json"], ranks).stdout)
        found[run] = json.loads(Path(run, "metrics.json").read_text())
        for key in ("relative_l2", "relative_l2_mean_field", "relative_l2_zero", "simulator_seconds", "surrogate_seconds"):
            expect(found[run][key] > 0 and abs(printed[key] - found[run][key]) <= 1e-6 * printed[key], (key, printed, found[run]))
        expect(found[run]["relative_l2_zero"] == 1 and found[run]["samples"] == 1, found[run])
        for name in ("sample_3.png", "loss.png"):
            expect(Path(run, name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n"), f"{run}/{name} is no PNG")
    for key in ("relative_l2", "relative_l2_mean_field"):
        expect(found["one"][key] == found["two"][key], (key, found))

    for output, ranks in (("answers1", 1), ("answers2", 2)):
        printed = grove(["predict", "checkpoint=two/best", "input=flows", f"output={output}", "first=1", "count=2"], ranks).stdout
        expect("2 samples predicted" in printed, printed)
    expect(files("answers1") == files("answers2"), "predictions on one and two ranks differ")
    one_line(grove(["predict", "checkpoint=two/best", "input=flows", "output=answers1"], exit_code=1), "answers1")
    one_line(grove(["evaluate", "run=nowhere"], exit_code=1), "nowhere")
    one_line(grove(["predict", "checkpoint=nowhere/best", "input=flows", "output=answers3"], exit_code=1), "nowhere/best")
    shutil.copytree("flows", "turned")
    for name in ("input", "target"):
        document = Path("turned", name, "zarr.json")
        metadata = json.loads(document.read_text())
        metadata["dimension_names"][1] = "height"
        document.write_text(json.dumps(metadata))
    one_line(grove(["predict", "checkpoint=two/best", "input=turned", "output=answers3"], exit_code=1), "axis 0 of the network is 'x'")
    expect(not Path("answers3").exists(), "answers3 was made")


def interrupt():
    """Ctrl-C at any time leaves a run that goes on as if nothing had happened."""
    grove(SIMULATE)
    for run, ranks, number in (("one", 1, signal.SIGINT), ("terminated", 1, signal.SIGTERM), ("two", 2, signal.SIGINT)):
        process = start([*TRAIN, f"run={run}", ENDLESS], ranks)
        wait_until(lambda: len(rows(run)) >= 2, "two epochs", process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        expect(process.returncode != 0, f"{run}: exit code 0 after a signal")
        if ranks == 1:
            expect(process.returncode == 1 and "stopped in epoch" in errors and "run it again to go on" in errors, errors)
        expect(not Path(run, "checkpoint.partial").exists(), f"{run}: half a checkpoint is left")
        state = json.loads(Path(run, "checkpoint", "state.json").read_text())
        expect(state["epoch"] == len(rows(run)) or ranks > 1, f"{run}: {state['epoch']} epochs, {len(rows(run))} rows")
        whole = f"{run}_whole"
        epochs = f"epochs={state['epoch'] + 2}"
        grove([*TRAIN, f"run={run}", epochs])
        grove([*TRAIN, f"run={whole}", epochs])
        expect_same_runs(run, whole)


def store_interrupt():
    """Ctrl-C in a copy says how to go on; the same command does, and makes what an undisturbed one makes."""
    folder = Path("big/u/c")
    folder.mkdir(parents=True)
    chunk = bytes(range(256)) * 4096
    count = 160
    document = {"zarr_format": 3, "node_type": "array", "shape": [count * len(chunk)], "data_type": "uint8", "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [len(chunk)]}}, "chunk_key_encoding": {"name": "default"},
                "codecs": [{"name": "bytes"}]}
    Path("big/u/zarr.json").write_text(json.dumps(document))
    Path("big/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    for i in range(count):
        Path(folder, str(i)).write_bytes(chunk)
    convert = ["store", "convert", "big", "copy", "compressor=gzip", "level=6", "memory=24", "threads=1"]
    for number in (signal.SIGINT, signal.SIGTERM):
        before = len(list(Path("copy").rglob("c/*")))
        process = start(convert)
        wait_until(lambda: len(list(Path("copy").rglob("c/*"))) >= before + 20, "some chunks", process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        expect(process.returncode == 1 and "stopped after" in errors and "run it again to go on" in errors, errors)
        expect(not Path("copy/u/zarr.json").exists(), "half an array is seen")
        one_line(grove(["store", "cat", "copy/u"], exit_code=1), "copy/u is an unfinished copy")
    one_line(grove(["store", "convert", "big", "copy", "compressor=zstd"], exit_code=1), "is of another copy: its codecs")
    result = json.loads(grove([*convert, "--json"]).stdout)
    expect(0 < result["bytes_skipped"] < result["bytes"] == count * len(chunk), result)
    convert[3] = "whole"
    grove(convert)
    expect(files("copy") == files("whole"), "the resumed copy differs")
    expect(json.loads(grove(["store", "check", "copy", "--json"]).stdout)["problem_count"] == 0, "problems")


def store_examples():
    """The examples of docs/store.md run as they stand, and give what they say."""
    text = (Path(__file__).parents[2] / "docs" / "store.md").read_text()
    example = text[text.index("## Commands"):].split("```")[1]
    expect(example.count("grove store") == 10, f"ten commands expected:\n{example}")
    done = subprocess.run(["sh", "-e", "-c", example], capture_output=True, text=True, timeout=100, check=False)
    expect(done.returncode == 0, f"{done.stdout}{done.stderr}")
    for name in ("backup", "other", "old", "shuffled"):
        found = json.loads(grove(["store", "check", name, "--json"]).stdout)
        expect(found["problem_count"] == 0 and found["arrays"] == (2 if name == "shuffled" else 3), found)
    expect(Path("slice.npy").stat().st_size == 128 + 16 * 16 * 3 * 4, "slice.npy")
    elements = [grove(["store", "cat", f"{name}/target", "3,:,4,:,2", "all=true"]).stdout for name in ("flows", "backup", "other", "old")]
    expect(len(set(elements)) == 1 and len(elements[0]) > 1000, elements)


def killed_rank():
    """A rank that dies takes the job with it at once; the checkpoint before goes on."""
    grove(SIMULATE)
    process = start([*TRAIN, "run=killed", ENDLESS], 2)
    wait_until(lambda: len(rows("killed")) >= 2, "two epochs", process)
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True).stdout
    ranks = [int(line.split()[0]) for line in listed.splitlines() if "grove train" in line]
    expect(len(ranks) == 2, listed)
    begin = time.monotonic()
    os.kill(ranks[1], signal.SIGKILL)
    process.communicate(timeout=30)
    expect(process.returncode != 0, "exit code 0 although a rank was killed")
    expect(time.monotonic() - begin < 20, "the job went on for long")
    state = json.loads(Path("killed", "checkpoint", "state.json").read_text()) if Path("killed", "checkpoint").exists() else {"epoch": 1}
    epochs = f"epochs={state['epoch'] + 2}"
    grove([*TRAIN, "run=killed", epochs])
    grove([*TRAIN, "run=whole", epochs])
    expect_same_runs("killed", "whole")


def interrupt_simulate():
    """Ctrl-C ends after the flows that are running; the same command makes the rest, and the data set is the same as without it."""
    many = [word.replace("samples=4", "samples=24") for word in SIMULATE]
    process = start(many)
    wait_until(lambda: Path("flows", "status", "c").is_dir(), "a flow", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    expect(process.returncode == 1 and "of 24 flows; run it again to go on" in errors, errors)
    done = json.loads(grove([*many, "--json"]).stdout)
    expect(done["done"] == 24 and 0 < done["made"] < 24, done)
    grove([word.replace("output=flows", "output=straight") for word in many])
    for array in ("input", "target", "status"):
        expect(files(f"flows/{array}") == files(f"straight/{array}"), f"'{array}' differs")


def killed():
    """A process that dies at any time, also while it writes a checkpoint, leaves a run that goes on."""
    grove(SIMULATE)
    epochs = 0
    for k in range(12):
        process = start([*TRAIN, "run=killed", ENDLESS])
        wait_until(lambda: len(rows("killed")) > epochs, "another epoch", process)
        time.sleep(0.003 * k)
        process.kill()
        process.communicate(timeout=30)
        epochs = len(rows("killed"))
    last = grove([*TRAIN, "run=killed", "epochs=1", "--json"])  # makes nothing, tells how far it is
    target = f"epochs={json.loads(last.stdout)['epochs'] + 2}"
    grove([*TRAIN, "run=killed", target])
    grove([*TRAIN, "run=whole", target])
    expect_same_runs("killed", "whole")
    expect(not list(Path("killed").rglob("checkpoint.*")), "parts are left")


def check_no_space(run, **options):
    """Training cannot write its checkpoint: one line, nothing half-made, and the checkpoint from before (if any) is as it was."""

    def checkpoint():
        return files(Path(run, "checkpoint")) if Path(run, "checkpoint").exists() else {}

    before = checkpoint()
    done = grove([*TRAIN, f"run={run}", "epochs=4", "-q"], exit_code=1, **options)
    one_line(done, ".safetensors")
    expect(before == checkpoint(), f"{run}: {sorted(before)} before, {sorted(checkpoint())} after")
    expect(not list(Path(run).rglob("*partial*")), f"{run}: parts are left")
    return done


def no_space():
    """Files may not grow (RLIMIT_FSIZE): what a full disk or quota does, without a disk."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    grove(SIMULATE)
    check_no_space("fresh", preexec_fn=limit)
    grove([*TRAIN, "run=begun", "epochs=2"])
    check_no_space("begun", preexec_fn=limit)
    for run in ("fresh", "begun"):
        grove([*TRAIN, f"run={run}", "epochs=3"])
    expect_same_runs("fresh", "begun")
    # flows: nothing half-made, and the same call completes the data set when there is space
    simulate = [word.replace("output=flows", "output=later") for word in SIMULATE]
    one_line(grove([*simulate, "-q"], exit_code=1, preexec_fn=limit), "target")
    expect(not list(Path("later").rglob("*partial*")), "parts are left in the data set")
    expect("4 of 4 flows done" in grove(simulate).stdout, "not completed")


@contextlib.contextmanager
def small_disk(size):
    """The folder disk, a file system of its own."""
    Path("disk").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", "disk"], capture_output=True, check=False)
    if mounted.returncode != 0:
        print("no right to mount a small file system")
        sys.exit(SKIPPED)
    try:
        yield
    finally:
        subprocess.run(["umount", "disk"], check=True)


def full_disk():
    """The same on a file system of its own that is full."""
    with small_disk("160k"):
        grove(SIMULATE)
        done = check_no_space("disk/run")
        expect("No space left on device" in done.stderr, done.stderr)


def learns():
    """The quickstart's job at a smaller size: on flows that it never saw the network errs at most half as much as the mean field."""
    grove(["simulate", "output=flows", "samples=48", "grid=16,16,16", "radius=2", "snapshots=6", "threads=2"])
    grove(["train", "data=flows", "run=run", "samples.validation=4", "samples.test=8", "epochs=20", "threads=1", "model.modes=6,6,6,3",
           "model.padding=0,0,0,2", "model.activation=gelu", "model.activation_after_last=false", "model.lift_hidden=0",
           "optimizer.lr=5e-3", "schedule.name=cosine", "checkpoint.epochs=20", "-q"], ranks=2)
    grove(["evaluate", "run=run", "-q"], ranks=2)
    metrics = json.loads(Path("run/metrics.json").read_text())
    expect(metrics["relative_l2"] <= 0.5 * metrics["relative_l2_mean_field"], f"does not learn: {metrics}")
    expect(all(Path("run", name).stat().st_size > 1000 for name in ("loss.png", "sample_40.png")), "pictures are missing")
    print(metrics)


HEAT = Path(__file__).resolve().parents[2] / "examples" / "heat"
TUNNEL = HEAT.parent / "tunnel"
# an .npy file as NumPy writes it; sleeps for a moment, so that there is something to interrupt
SLOW = """import array, struct, sys, time
value, sample = float(sys.argv[1]), int(sys.argv[2])
time.sleep(0.2)
def save(name, shape, values):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': %r, }" % (shape,)).encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\\n"
    with open(name, "wb") as file:
        file.write(b"\\x93NUMPY\\x01\\x00" + struct.pack("<H", len(head)) + head + array.array("f", values).tobytes())
save("input.npy", (2, 3), [value] * 6)
save("target.npy", (2, 3), [sample + value] * 6)
"""
SLOW_CAMPAIGN = """
simulator: [python3, slow.py, "{a}", "{sample}"]
files: [slow.py]
samples: 16
sampling: sobol
parameters: {a: uniform 0 1}
input: {axes: [x, y], shape: [2, 3]}
target: {axes: [x, y], shape: [2, 3]}
"""


def fields(folder):
    """What a data set holds, but for its attributes, which tell the seconds that it took."""
    return {array: files(f"{folder}/{array}") for array in ("input", "target", "status", "parameters")}


def campaign():
    """A program of somebody else, as the example has it: made once, made again only where something is missing or failed."""
    for name in ("heat.py", "heat.yaml"):
        shutil.copy(HEAT / name, name)
    generate = ["generate", "--config", "heat.yaml", "output=heat", "samples=10", "workers=2", "attempts=1"]
    made = grove(generate).stdout
    expect("heat: 10 of 10 samples done, 10 made now" in made, made)
    expect(not Path("heat.job").exists(), "the job is left")
    before = files("heat")
    again = json.loads(grove([*generate, "--json"]).stdout)
    expect(again["made"] == 0 and again["done"] == 10 and files("heat") == before, again)
    info = json.loads(grove(["store", "info", "heat", "--json"]).stdout)
    expect("parameters" in json.dumps(info), info)
    table = grove(["store", "cat", "heat/parameters"]).stdout
    expect(table.count("[") == 11, table)

    # a third of the samples is out of the simulator's range
    some_fail = [*generate, "output=some", "parameters=x uniform 0 1,y uniform 0 1,diffusivity uniform 0.1 0.325"]
    done = grove(some_fail, exit_code=1)
    failed = [line for line in done.stderr.splitlines() if line.startswith("sample ")]
    expect(failed and all("python3 ended with exit code 1: diffusivity 0." in line and "is too large" in line for line in failed), done.stderr)
    expect(f"{len(failed)} of 10 samples failed; retry_failed=true" in done.stderr, done.stderr)
    listed = grove(some_fail, exit_code=1)
    expect([line for line in listed.stderr.splitlines() if line.startswith("sample ")] == failed, listed.stderr)
    number = failed[0].split()[1]
    one_line(grove([*some_fail, f"sample={number}"], exit_code=1), "python3 ended with exit code 1")
    expect(Path(f"sample-{number}", "heat.py").exists() and Path(f"sample-{number}", "input.raw").exists() is False, "the folder of the sample")
    Path("heat.py").write_text(Path("heat.py").read_text().replace("diffusivity > 0.25", "diffusivity > 1"))
    made = json.loads(grove([*some_fail, "retry_failed=true", "--json"]).stdout)
    expect(made["made"] == len(failed) and made["failed"] == 0 and not Path("some.job").exists(), made)
    one_line(grove([*some_fail, "seed=2"], exit_code=1), "seed 1, 2 is wanted")


def flat(values):
    """The numbers of nested lists."""
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]


def campaign_function():
    """The example's C function makes the fields that its program makes; its sources may lie and run anywhere."""
    shutil.copytree(HEAT, "there")
    sizes = ["samples=8", "workers=2"]
    grove(["generate", "--config", "there/heat.yaml", "output=program", "files=there/heat.py", *sizes])
    made = grove(["generate", "--config", "there/heat_c.yaml", "output=function", "simulator=there/heat.c", *sizes]).stdout
    expect("function: 8 of 8 samples done, 8 made now" in made and not Path("function.job").exists(), made)
    for array in ("input", "target", "parameters"):
        values = [json.loads(grove(["store", "cat", f"{folder}/{array}", "--json"]).stdout)["values"] for folder in ("program", "function")]
        pairs = list(zip(*(flat(one) for one in values)))
        expect(len(pairs) >= 24 and all(abs(a - b) < 1e-6 for a, b in pairs) and pairs[0] != pairs[-1], f"{array}: {pairs}")
    Path("there/heat.c").write_text("broken\n" + Path("there/heat.c").read_text())
    generate = ["generate", "--config", "there/heat_c.yaml", "output=broken", "simulator=there/heat.c", *sizes]
    one_line(grove(generate, exit_code=1), "could not compile 'heat' (exit code 1): heat.c:1:")
    expect(not Path("broken").exists() and not Path("broken.job").exists(), "something was begun")


def workers_of(job):
    """Process numbers of the workers of a job."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "batch worker " + str(Path(job).resolve()) in line]


def campaign_killed():
    """Workers and driver killed in the middle: the same command goes on, and the data set is the one of an undisturbed campaign."""
    Path("slow.py").write_text(SLOW)
    Path("slow.yaml").write_text(SLOW_CAMPAIGN)
    generate = ["generate", "--config", "slow.yaml", "workers=2", "idle=2"]
    n_done = lambda: sum(path.read_bytes() == b"\1" for path in Path("killed/status/c").glob("*"))
    process = start([*generate, "output=killed"])
    wait_until(lambda: n_done() >= 2 and workers_of("killed.job"), "two samples", process)
    os.kill(workers_of("killed.job")[0], signal.SIGKILL)
    wait_until(lambda: n_done() >= 5, "five samples", process)
    process.kill()
    process.communicate(timeout=30)
    expect(n_done() < 16, "it was too fast to be killed")
    done = json.loads(grove([*generate, "output=killed", "--json"]).stdout)
    expect(done["done"] == 16 and 0 < done["made"] <= 11, done)
    grove([*generate, "output=straight"])
    expect(fields("killed") == fields("straight"), "the data sets differ")
    expect(not Path("killed.job").exists() and not list(Path("killed").rglob("*partial*")), "parts are left")
    process = start([*generate, "output=stopped"])
    wait_until(lambda: Path("stopped/status/c").is_dir(), "a sample", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    expect(process.returncode == 1 and "the same command goes on" in errors, errors)
    grove([*generate, "output=stopped"])
    expect(fields("stopped") == fields("straight"), "the data sets differ after Ctrl-C")


def campaign_flow():
    """The flow by `grove generate` on one worker and on two is that of `grove simulate`, which takes it for its own."""
    keys = ["samples=4", "flow.grid=16,16,16", "flow.radius=2", "flow.snapshots=3"]
    grove(SIMULATE)
    for workers in (1, 2):
        grove(["generate", f"output=made{workers}", f"workers={workers}", *keys])
        for name in files("flows"):
            if name != "zarr.json":
                expect(Path("flows", name).read_bytes() == Path(f"made{workers}", name).read_bytes(), name)
        attributes = [json.loads(Path(folder, "zarr.json").read_text())["attributes"] for folder in ("flows", f"made{workers}")]
        for kept in attributes:
            expect(kept.pop("simulation")["flows"] == 4, kept)
        expect(attributes[0] == attributes[1], attributes)
    expect(json.loads(grove([*SIMULATE, "output=made2", "--json"]).stdout)["made"] == 0, "made again")


BATCH_TASKS = str(Path(__file__).resolve().parents[1] / "batch" / "tasks.c")


def on_terminal(arguments):
    """What a command writes to a terminal of 80 columns as its stderr, and its exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command(arguments), stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 4096):
            text += part
    os.close(ours)
    return text.decode(), process.wait(60)


def batch():
    """The progress of a job shows what `status` counts; `stats` and `explain` name the node."""
    Path("table.csv").write_text("line\n" + "exit 3\n" + "sleep 0.3\n" * 7)
    text, code = on_terminal(["batch", "run", "args=table.csv", "job=job", "workers=2", "attempts=1", "price=3600", "idle=1", "--", "sh", "-c", "{0}"])
    expect(code == 1, text)
    drawn = [line for line in re.findall(r"\r\x1b\[K([^\r\n]*)", text) if line.startswith("batch [")]
    shown = re.compile(r"batch \[[#.]+\] ((\d+ (ready|running|done|failed), )+)cost \d+\.\d\d, \d.* left")
    words = [match.group(1) for match in map(shown.fullmatch, drawn) if match]
    expect(words and all(sum(map(int, re.findall(r"\d+", counts))) == 8 for counts in words), drawn)
    expect(any("running" in counts and "done" in counts and "1 failed" in counts for counts in words), drawn)
    expect(all(len(line) < 80 for line in drawn), drawn)
    expect(re.search(r"batch: 8 tasks in ", text), text)
    counts = json.loads(grove(["batch", "status", "job", "--json"]).stdout)
    expect((counts["tasks"], counts["done"], counts["failed"]) == (8, 7, 1), counts)
    expect(grove(["batch", "status", "job"]).stdout.startswith("8 tasks: 7 done, 1 failed;"), "status")
    rows = [line.split(",") for line in grove(["batch", "stats", "job"]).stdout.splitlines()]
    node = rows[0].index("node")
    expect(len(rows) == 9 and {row[node] for row in rows[1:]} == {socket.gethostname()}, rows)
    expect({task["node"] for task in json.loads(grove(["batch", "stats", "job", "--json"]).stdout)} == {socket.gethostname()}, "stats --json")
    explained = grove(["batch", "explain", "job", "0"]).stdout
    expect(re.match(rf"task 0 \(sh\): failed, attempt 1 on worker \d+ \({socket.gethostname()}\), ", explained), explained)
    # resumed: what was there before counts, but not for the time that is left
    grove(["batch", "retry", "job"])
    done = grove(["batch", "resume", "job", "attempts=1"], exit_code=1)
    expect("batch: 1 tasks in " in done.stderr and "\r" not in done.stderr, done.stderr)


def batch_programs():
    """A program of this folder gets the fields of a table as they are written; what it made is fetched; mistakes are told before anything runs."""
    Path("solver").write_text("#!/bin/sh\nprintf '%s' \"$1\" > out\n")
    Path("solver").chmod(0o700)
    fields = ["007", "1e400", "0.10", "a, b", 'a "quote"\nand a line']
    rows = ['"' + field.replace('"', '""') + '"' for field in fields]
    Path("table.csv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(["field", *rows, "", ""]).encode())
    grove(["batch", "run", "./solver", "args=table.csv", "job=programs", "outputs=out", "idle=1", "--", "{0}"])
    fetched = json.loads(grove(["batch", "fetch", "programs", "fetched", "--json"]).stdout)
    expect(fetched == {"files": len(fields)}, fetched)
    found = [Path("fetched", str(task), "out").read_text() for task in range(len(fields))]
    expect(found == fields, found)
    expect("task 9: there are 5" in grove(["batch", "fetch", "programs", "fetched", "9"], exit_code=1).stderr, "fetch 9")
    Path("bad.c").write_text("int x = ;\n")
    Path("absent.csv").write_text("field\n1\nfile:nowhere\n")
    for arguments, told in [
        (["bad.c", "function=f"], "could not compile 'f'"),
        (["./none"], "program ./none: No such file"),
        (["true", "args=absent.csv"], "open nowhere: No such file"),
        (["true", "results=none/results.csv"], "results=none/results.csv: No such file"),
    ]:
        expect(told in grove(["batch", "run", *arguments, "job=mistaken"], exit_code=1).stderr, told)
    expect("no tasks in mistaken" in grove(["batch", "resume", "mistaken"], exit_code=1).stderr, "a job without tasks")


def batch_full_disk():
    """The disk of driver and workers is full: what is on it stays, and with room again the same job goes on to its end."""
    n = 60
    Path("table.csv").write_text("bytes\n" + "".join(f"{60000 + task}\n" for task in range(n)))
    with small_disk("1500k"):
        run = grove(["batch", "run", BATCH_TASKS, "function=text", "flags=-O1", "args=table.csv", "job=disk/job", "workers=2", "attempts=2", "idle=1"],
                    exit_code=1)
        expect("No space left on device" in run.stderr, run.stderr)
        before = json.loads(grove(["batch", "status", "disk/job", "--json"]).stdout)
        expect(before["tasks"] == n and 0 < before["done"] < n, before)
        subprocess.run(["mount", "-o", "remount,size=20m", "disk"], check=True)
        grove(["batch", "retry", "disk/job"])
        grove(["batch", "resume", "disk/job", "results=results.csv", "attempts=2", "workers=2", "idle=1"])
        rows = [line.split(",") for line in Path("results.csv").read_text().splitlines()[1:]]
        expect([len(row[-1]) - 2 for row in rows] == [60000 + task for task in range(n)], "results are not whole")
        wait_until(lambda: not workers_of("disk/job"), "the end of the workers")


def tunnel():
    """The example of a body in a wind tunnel, on fewer cells; the campaign over its angles."""
    subprocess.run([sys.executable, TUNNEL / "body.py"], check=True)
    small = ["snapshots=2", "interval=0.5"]
    result = json.loads(grove(["simulate", "--config", TUNNEL / "tunnel.yaml", "output=flow", "picture=flow.png", "grid=32,16,16", "radius=5", *small,
                               "--json"]).stdout)
    expect(result["made"] == 1 and result["body"]["file"] == "body.stl" and result["body"]["triangles"] == 64, result)
    expect(abs(result["body"]["grid_volume"] / result["body"]["volume"] - 1) < 0.1, result)
    expect(Path("flow.png").read_bytes()[:4] == b"\x89PNG", "no picture")
    one_line(grove(["simulate", "--config", TUNNEL / "tunnel.yaml", "output=other", "picture=flow.jpg"], exit_code=1), "ending in .png")
    one_line(grove(["simulate", "--config", TUNNEL / "tunnel.yaml", "output=other", "picture=nowhere/flow.png"], exit_code=1), "no folder 'nowhere'")
    expect(not Path("other").exists(), "simulated before the picture was refused")
    generate = ["generate", "--config", TUNNEL / "angles.yaml", "output=angles", "samples=2", "flow.grid=32,16,16", "flow.radius=5"]
    result = json.loads(grove([*generate, "parameters=rotation_y uniform -30 30", *("flow." + word for word in small), "workers=2", "--json"]).stdout)
    expect(result["made"] == 2 and result["body"]["open_edges"] == 0, result)


SCENARIOS = {f.__name__: f for f in (pipeline, learns, interrupt, interrupt_simulate, killed, killed_rank, no_space, full_disk, store_interrupt, store_examples,
                                     campaign, campaign_function, campaign_killed, campaign_flow, batch, batch_programs, batch_full_disk, tunnel)}


def main(scenarios):
    os.environ["PATH"] = os.environ["GROVE_TEST_PATH"] + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory(prefix="grove-commands-") as folder:
        os.chdir(folder)
        try:
            scenarios[sys.argv[1]]()
        finally:
            os.chdir("/")


if __name__ == "__main__":
    main(SCENARIOS)
