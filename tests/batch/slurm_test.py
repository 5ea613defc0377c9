"""The batch engine on a real Slurm: all daemons on this machine, in a folder of their own that goes in the end. What is tested mostly waits, so several
scenarios run at once, each in a partition of its own of two nodes with two cores each.

usage: slurm_test.py [SCENARIO...], or -- COMMAND... to run that under this Slurm; in an environment with GROVE_PROGRAM.
Exit status 77: Slurm or munge is not installed, or this is not root.
"""

import concurrent.futures
import contextlib
import json
import os
import queue as queue_module
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SKIPPED = 77
os.environ["PATH"] += ":/usr/sbin"
NEEDED = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "srun", "sinfo"]
N_LANES = 4  # partitions: scenarios at once
TASKS = str(Path(__file__).resolve().parent / "tasks.c")
GROVE = os.environ.get("GROVE_PROGRAM", "grove")
CONFIGURATION = """
ClusterName=grovetest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0
ReturnToService=2
MpiDefault=none
KillWait=1
"""


def fail(message):
    sys.exit(f"slurm_test: {message}")


def expect(condition, message):
    if not condition:
        fail(message)


def wait_until(condition, seconds, what):
    begin = time.monotonic()
    while not (found := condition()):
        expect(time.monotonic() - begin < seconds, f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return found


def output_of(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


# ---- Slurm ----


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def signal_all(pid_files, number):
    """Are any of these processes there?"""
    found = False
    for pid_file in pid_files:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int(pid_file.read_text()), number)
            found = True
    return found


def stop(pid_files):
    signal_all(pid_files, signal.SIGTERM)
    end = time.monotonic() + 5
    while signal_all(pid_files, 0) and time.monotonic() < end:
        time.sleep(0.02)
    signal_all(pid_files, signal.SIGKILL)


def kill_rest(root):
    """What was started under this Slurm, by its environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if f"SLURM_CONF={root}/slurm.conf".encode() in path.read_bytes().split(b"\0") and int(path.parent.name) != os.getpid():
                os.kill(int(path.parent.name), signal.SIGKILL)


def end_all_jobs():
    with contextlib.suppress(OSError, subprocess.SubprocessError, SystemExit):
        subprocess.run(["scancel", "--user=0", "--full", "--signal=KILL"], capture_output=True, check=False, timeout=30)
        subprocess.run(["scancel", "--user=0"], capture_output=True, check=False, timeout=30)
        wait_until(lambda: not queue(), 15, "an empty queue")


@contextlib.contextmanager
def slurm():
    """Starts the daemons; sets SLURM_CONF; stops them by their pid files."""
    root = Path(tempfile.mkdtemp(prefix="grove-slurm-"))
    host = socket.gethostname().split(".")[0]
    nodes = [f"n{i + 1}" for i in range(2 * N_LANES)]
    (root / "state").mkdir()
    for name in nodes:
        (root / f"spool-{name}").mkdir()
    ports = free_ports(1 + len(nodes))
    text = CONFIGURATION.format(root=root, host=host, port=ports[0])
    for name, port in zip(nodes, ports[1:]):
        text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=4000\n"
    for lane in range(N_LANES):
        text += f"PartitionName=lane{lane} Nodes={','.join(nodes_of(root / f'lane{lane}'))} MaxTime=60 State=UP{' Default=YES' if lane == 0 else ''}\n"
    configuration = root / "slurm.conf"
    configuration.write_text(text)
    (root / "munge.key").write_bytes(os.urandom(1024))
    (root / "munge.key").chmod(0o600)
    os.environ["SLURM_CONF"] = str(configuration)
    os.environ["XDG_CACHE_HOME"] = str(root)  # of compiled tasks
    try:
        subprocess.run(["munged", "--force"] + [f"--{word}={root}/{file}" for word, file in
                       [("key-file", "munge.key"), ("socket", "munge.sock"), ("pid-file", "munged.pid"), ("log-file", "munged.log"), ("seed-file", "munge.seed")]],
                       check=True, timeout=30)
        daemons = [["slurmctld", "-f", configuration]] + [["slurmd", "-f", configuration, "-N", name] for name in nodes]
        for daemon in [subprocess.Popen(words) for words in daemons]:
            expect(daemon.wait(30) == 0, f"{daemon.args} failed")
        wait_until(lambda: subprocess.run(["sinfo", "--noheader", "--Node", "--format=%T"], capture_output=True, text=True, check=False).stdout.split() ==
                   ["idle"] * len(nodes), 40, "idle nodes")
        yield root
    except BaseException:
        for log in sorted(root.glob("*.log")):
            print(f"== the end of {log.name}", *log.read_text(errors="replace").splitlines()[-15:], sep="\n", file=sys.stderr)
        raise
    finally:
        end_all_jobs()
        stop([root / f"slurmd-{name}.pid" for name in nodes] + [root / "slurmctld.pid"])
        stop([root / "munged.pid"])
        kill_rest(root)
        shutil.rmtree(root, ignore_errors=True)


def nodes_of(root):
    """The two nodes of the partition that a scenario has for itself: it is called as its folder."""
    lane = int(root.name.removeprefix("lane"))
    return [f"n{2 * lane + 1}", f"n{2 * lane + 2}"]


def queue():
    return [line.split(maxsplit=2) for line in output_of("squeue", "--noheader", "--format=%i %T %j").splitlines()]


# ---- grove ----


def command(job, *arguments, what="run"):
    words = [GROVE, "batch", what, *([f"job={job}", "executor=slurm"] if what == "run" else [str(job)])]
    defaults = [f"partition={job.parent.name}", "poll_interval=0.5", "submit_interval=0.1"]
    given = {word.split("=")[0] for word in arguments}
    return words + [word for word in defaults if word.split("=")[0] not in given] + [*arguments]


def start(job, *arguments):
    return subprocess.Popen(command(job, *arguments), stdout=subprocess.DEVNULL)


def grove(job, *arguments, exit_code=0, what="run", **options):
    done = subprocess.run(command(job, *arguments, what=what), capture_output=True, text=True, timeout=100, check=False, **options)
    expect(done.returncode == exit_code, f"{done.args}: exit code {exit_code} expected, {done.returncode} found\n{done.stdout}{done.stderr}")
    return done


def look(job, what, *words):
    return output_of(GROVE, "batch", what, str(job), *words)


def stats(job):
    return json.loads(look(job, "stats", "--json"))


def expect_done(job, n, most_attempts=1):
    tasks = stats(job)
    expect(len(tasks) == n and all(task["state"] == "done" for task in tasks), f"{n} done tasks expected in {job}, found {tasks}")
    expect(max(task["attempts"] for task in tasks) <= most_attempts, f"{job}: more than {most_attempts} attempts: {tasks}")
    return tasks


def naps(root, seconds, n):
    table = root / f"naps-{seconds}-{n}.csv"
    table.write_text("seconds\n" + f"{float(seconds)}\n" * n)
    return [TASKS, "function=nap", "flags=-O1", f"args={table}"]


def records(job):
    """(kind, payload) of the journal: src/batch/wire.h."""
    data = Path(job, "journal").read_bytes()
    at, found = 0, []
    while at + 16 <= len(data):
        n, _, kind = struct.unpack_from("<IIq", data, at)
        found.append((kind, data[at + 16 : at + 8 + n]))
        at += 8 + n
    return found


SUBMIT, WORKER, HELLO = 3, 4, 11


def n_workers(job):
    return sum(kind == WORKER for kind, _ in records(job))


def processes(job):
    """{number: pid} of a job's workers."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[1:3] == [b"batch", b"worker"] and words[3] == os.fsencode(job):
                pid = int(path.parent.name)
                found[int(words[4])] = min(pid, found.get(int(words[4]), pid))
    return found


def wait_for_done(job, n):
    def is_done():
        seen = subprocess.run([GROVE, "batch", "status", str(job), "--json"], capture_output=True, text=True, timeout=60, check=False)
        return seen.returncode == 0 and json.loads(seen.stdout)["done"] >= n

    wait_until(is_done, 30, f"{n} done tasks in {job}")


def expect_all_gone(job, seconds=12):
    name = "grove." + "".join(c if c.isalnum() else "_" for c in Path(job).name)[:24]
    wait_until(lambda: not any(entry[2].startswith(name) for entry in queue()) and not processes(job), seconds, f"end of the allocations of {job}")


# ---- scenarios: each has a job of its own ----


def map_over_nodes(root):
    """Some hundred tasks over two nodes; a job's folder may have any name; nothing is left behind."""
    job = root / "it's \"a\" $job\nof two lines"
    grove(job, *naps(root, 0.01, 400), "workers_per_allocation=2", "max_allocations=2")
    expect_done(job, 400)
    expect(n_workers(job) == 4, f"4 workers expected, {n_workers(job)} found")
    expect({task["node"] for task in stats(job)} == set(nodes_of(root)), f"tasks on both nodes expected, found {stats(job)}")
    expect(f"({stats(job)[0]['node']})" in look(job, "explain", "0"), "explain does not name the node")
    expect((job / "allocations").stat().st_mode & 0o077 == 0 or job.stat().st_mode & 0o077 == 0, "the job's folder is not private")
    expect_all_gone(job)


def srun_over_nodes(root):
    """One allocation of two nodes: programs run on both."""
    job = root / "two nodes"
    grove(job, "repeat=8", "workers_per_allocation=4", "nodes_per_allocation=2", "max_allocations=1", "--", "sh", "-c", "sleep 0.2; echo on $SLURMD_NODENAME")
    expect_done(job, 8)
    said = {look(job, "logs", str(task)).splitlines()[-1] for task in range(8)}
    expect(said == {f"on {name}" for name in nodes_of(root)}, f"tasks on both nodes expected, found {said}")
    expect(len(list((job / "allocations").glob("*.log"))) == 1, "one allocation expected")


def ranks(root):
    """Programs of two ranks on each of two nodes; a worker that is killed takes its allocation with it, as srun cannot be cleaned up after otherwise."""
    job = root / "ranks"
    grove(job, "repeat=2", "nodes_per_task=2", "ranks_per_task=4", "max_allocations=1", "--", "sh", "-c", "echo $SLURM_PROCID of $SLURM_NTASKS on $SLURMD_NODENAME")
    expect_done(job, 2)
    said = sorted(look(job, "logs", "1").splitlines()[1:])
    expect(said == [f"{rank} of 4 on {nodes_of(root)[rank // 2]}" for rank in range(4)], f"four ranks on two nodes expected, found {said}")
    job = root / "killed ranks"
    driver = start(job, "repeat=2", "nodes_per_task=2", "max_allocations=1", "--", "sleep", "1")
    victims = wait_until(lambda: programs_of(job, 0), 30, "srun")
    os.kill(processes(job)[0], signal.SIGKILL)
    wait_until(lambda: not set(victims) & set(programs_of(job, 0)), 10, "the end of srun and what it started")
    expect(driver.wait(60) == 0, "the driver failed")
    expect([task["attempts"] for task in expect_done(job, 2, 2)] == [2, 1] and n_workers(job) == 2, f"found {stats(job)}")
    done = grove(root / "no ranks", *naps(root, 0, 1), "nodes_per_task=1", "attempts=1", exit_code=1)
    expect("a program expected" in done.stderr, f"C functions with ranks are refused, found {done.stderr}")


def programs_of(job, worker):
    """Processes in the folders where this worker runs programs."""
    found, scratch = [], f"{job}/workers/{worker}/scratch/"
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith(scratch):
                found.append(int(path.parent.name))
    return found


def killed_worker(root):
    """kill -9 of a worker in the middle of a task: what that started ends, it runs again, nobody else notices, and the worker goes on."""
    job = root / "killed worker"
    driver = start(job, "repeat=12", "workers_per_allocation=2", "max_allocations=1", "--", "sh", "-c", "sleep 0.4; exit 0")
    wait_for_done(job, 2)
    victims = wait_until(lambda: programs_of(job, 1), 10, "a program of worker 1")
    os.kill(processes(job)[1], signal.SIGKILL)
    killed = time.time()
    wait_until(lambda: not set(victims) & set(programs_of(job, 1)), 5, "the end of what the worker ran")
    expect(driver.wait(60) == 0, "the driver failed")
    tasks = expect_done(job, 12, 2)
    expect(sorted(task["attempts"] for task in tasks) == [1] * 11 + [2], f"one task in its second attempt expected, found {tasks}")
    expect(n_workers(job) == 2 and sum(task["worker"] == 1 and task["started"] > killed for task in tasks) >= 2, f"the worker did not go on: {tasks}")
    again = next(task["task"] for task in tasks if task["attempts"] == 2)
    expect("its worker 1 was killed (signal 9, Killed)" in look(job, "logs", str(again)), "the log does not tell")


def hanging_worker(root):
    """A worker that is stopped cannot keep its tasks' time limit: its driver gives its allocation up."""
    job, table = root / "hanging worker", root / "hanging.csv"
    table.write_text("hangs\n0\n1\n0\n")
    grove(job, TASKS, "function=stop_worker", "flags=-O1", f"args={table}", "time_limit=1", "poll_interval=0.2", "max_allocations=1")
    tasks = expect_done(job, 3, 2)
    expect([task["attempts"] for task in tasks] == [1, 2, 1] and n_workers(job) == 2, f"found {tasks}")
    expect("told nothing until long after its task's time limit" in look(job, "logs", "1"), "the log does not tell")


def alone(root):
    """A task that has crashed runs again in a process that runs nothing else; the others lose nothing."""
    job, table, results = root / "alone", root / "alone.csv", root / "alone results.csv"
    table.write_text("crashes\n" + "".join(f"{int(task == 3)}\n" for task in range(9)))
    grove(job, TASKS, "function=process", "flags=-O1", f"args={table}", f"results={results}", "max_allocations=1")
    rows = [line.split(",") for line in results.read_text().splitlines()[1:]]
    expect([int(row[2]) for row in rows] == [1, 1, 1, 2, 1, 1, 1, 1, 1], f"attempts: {rows}")
    expect([row[-1] for row in rows].count(rows[3][-1]) == 1 and rows[0][-1] == rows[1][-1], f"processes: {rows}")


def full_disk(root):
    """Files of workers may not grow (RLIMIT_FSIZE): results that find no room are made again elsewhere; a value that finds none anywhere fails, and why is told."""
    wrapper = root / "limited grove"
    wrapper.write_text(f"#!/bin/sh\ntrap '' XFSZ\nulimit -f 64\nexec '{GROVE}' \"$@\"\n")
    wrapper.chmod(0o755)
    environment = {**os.environ, "GROVE_PROGRAM": str(wrapper)}
    job, table, results = root / "full disk", root / "texts.csv", root / "texts results.csv"
    table.write_text("bytes\n" + "12000\n" * 12)
    grove(job, TASKS, "function=text", "flags=-O1", f"args={table}", f"results={results}", "workers_per_allocation=2", "max_allocations=2", "attempts=40",
          env=environment)  # a task may meet one full worker after the other
    expect(max(task["attempts"] for task in expect_done(job, 12, 40)) > 1, "the disk was never full")
    expect(all(line.endswith(",\"" + "x" * 12000 + "\"") for line in results.read_text().splitlines()[1:]), "results are not whole")
    table.write_text("bytes\n300000\n")
    done = grove(root / "no room", TASKS, "function=text", "flags=-O1", f"args={table}", "max_allocations=1", "attempts=2", exit_code=1, env=environment)
    expect("failed after 2 attempts" in done.stderr and "File too large" in done.stderr, f"the reason is not told: {done.stderr}")


def crashing_compiler(root):
    """Fails the tasks with what it said."""
    compiler = root / "crashing-cc"
    compiler.write_text("#!/bin/sh\necho out of ideas >&2\nkill -SEGV $$\n")
    compiler.chmod(0o755)
    done = grove(root / "crashing compiler", *naps(root, 0, 1), "attempts=2", "max_allocations=1", exit_code=1, env={**os.environ, "CC": str(compiler)})
    expect("failed after 2 attempts" in done.stderr and "could not compile 'nap' (signal 11): out of ideas" in done.stderr, f"found {done.stderr}")


def garbage(root):
    """A worker that tells nonsense goes, and its allocation with it; what ran there runs again."""
    job = root / "garbage"
    driver = start(job, *naps(root, 0.5, 12), "workers_per_allocation=2", "max_allocations=2")
    wait_for_done(job, 4)
    with open(job / "workers" / "1" / "outbox", "ab") as outbox:
        outbox.write((job / "workers" / "0" / "outbox").read_bytes())
    expect(driver.wait(60) == 0, "the driver failed")
    expect_done(job, 12, 2)
    expect(n_workers(job) > 4, "a further allocation expected")


def cancelled_allocations(root):
    """scancel: tasks that run are finished, the others go on elsewhere. Killed and unknown to Slurm soon after: what ran runs again, at nobody's cost if
    its worker was told to go before."""
    job = root / "cancelled"
    driver = start(job, *naps(root, 0.6, 16), "workers_per_allocation=2", "max_allocations=2")
    wait_for_done(job, 2)
    number = min(int(entry[0]) for entry in queue() if entry[2].startswith("grove.cancelled") and entry[1] == "RUNNING")
    subprocess.run(["scancel", str(number)], check=True)
    expect(driver.wait(60) == 0, "the driver failed")
    expect_done(job, 16)
    expect(n_workers(job) >= 5, "a further allocation expected")
    job = root / "vanished"
    driver = start(job, *naps(root, 0.6, 10), "workers_per_allocation=2", "max_allocations=2")
    wait_for_done(job, 2)
    number = min(int(entry[0]) for entry in queue() if entry[2].startswith("grove.vanished") and entry[1] == "RUNNING")
    os.kill(driver.pid, signal.SIGSTOP)
    subprocess.run(["scancel", "--full", "--signal=KILL", str(number)], check=True)
    wait_until(lambda: not any(entry[0] == str(number) for entry in queue()), 40, "a job that is not listed")
    os.kill(driver.pid, signal.SIGCONT)
    expect(driver.wait(60) == 0, "the driver failed")
    expect_done(job, 10, 2)


def preempted(root):
    """A task longer than the time between SIGTERM and SIGKILL does not lose an attempt."""
    job = root / "preempted"
    mark = root / "has begun"
    stubborn = f"trap '' TERM; if [ -e '{mark}' ]; then exit 0; fi; touch '{mark}'; sleep 60"
    driver = start(job, "max_allocations=1", "attempts=1", "--", "sh", "-c", stubborn)
    wait_until(mark.exists, 30, "a task that runs")
    subprocess.run(["scancel", "--name", next(entry[2] for entry in queue() if entry[2].startswith("grove.preempted"))], check=True)
    expect(driver.wait(60) == 0, "the driver failed")
    expect_done(job, 1)
    expect(n_workers(job) == 2, f"two allocations expected, found {n_workers(job)}")


def killed_driver(root):
    """The next driver finds the allocations and takes their results."""
    job = root / "killed driver"
    driver = start(job, *naps(root, 0.5, 24), "workers_per_allocation=2", "max_allocations=2")
    wait_until(lambda: len(processes(job)) == 4, 30, "four workers")
    wait_for_done(job, 6)
    driver.kill()
    driver.wait()
    before, alive = n_workers(job), processes(job)
    expect(before == 4 and len(alive) == 4, f"4 workers expected, found {before}, {alive}")
    grove(job, "workers_per_allocation=2", "max_allocations=2", what="resume")
    expect_done(job, 24)
    expect(n_workers(job) == before, "the second driver asked for allocations although it had them")


def refused(root):
    """A bad partition, and tasks that fit into no allocation: said at once, in the scheduler's own words, also by explain."""
    job = root / "refused"
    begin = time.monotonic()
    done = grove(job, *naps(root, 0, 5), "partition=nowhere", exit_code=1)
    expect(time.monotonic() - begin < 5 and "invalid partition specified: nowhere" in done.stderr, f"the bad partition is not named: {done.stderr}")
    expect("invalid partition" in look(job, "explain", "0"), "explain does not have the scheduler's words")
    done = grove(root / "too long", *naps(root, 0, 5), "time_limit=100", "allocation_time=100", exit_code=1)
    expect("does not fit into an allocation" in done.stderr, f"found {done.stderr}")
    done = grove(root / "no program", *naps(root, 0, 2), "max_allocations=1", exit_code=1, env={**os.environ, "GROVE_PROGRAM": "/bin/false"})
    expect("3 allocations in a row ended before a worker began" in done.stderr, f"workers that cannot start are not told: {done.stderr}")


def deaf_scheduler(root):
    """squeue and sbatch that fail and hang now and then."""
    folder = root / "bin"
    folder.mkdir()
    for name in ["sbatch", "squeue"]:
        wrapper = folder / name
        wrapper.write_text(f'#!/bin/sh\nn=$(cat "$0.n" 2>/dev/null || echo 0)\necho $((n + 1)) >"$0.n"\n'
                           f'if [ $n -lt 1 ]; then echo "{name}: error: Socket timed out on send/recv operation" >&2; exit 1; fi\nexec {shutil.which(name)} "$@"\n')
        wrapper.chmod(0o755)
    job = root / "deaf"
    done = grove(job, *naps(root, 0.2, 16), "workers_per_allocation=2", "max_allocations=1", env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    expect_done(job, 16)
    expect("sbatch failed: sbatch: error: Socket timed out" in done.stderr and "squeue failed" in done.stderr, f"no warnings: {done.stderr}")


def held(root):
    """Why tasks wait, in the scheduler's words; they go on when it lets them."""
    job = root / "held"
    driver = start(job, *naps(root, 0, 5), "max_allocations=1", "sbatch=--hold")
    wait_until(lambda: job.exists() and "PENDING, JobHeldUser" in subprocess.run([GROVE, "batch", "explain", str(job), "0"], capture_output=True, text=True,
                                                                                check=False).stdout, 20, "explain with Slurm's reason")
    subprocess.run(["scontrol", "release", next(entry[0] for entry in queue() if entry[2].startswith("grove.held"))], check=True)
    expect(driver.wait(60) == 0, "the driver failed")
    expect_done(job, 5)


def faults(root):
    """Tasks that crash, exit, abort, fail once and go well then; one that hangs."""
    job = root / "faults"
    table = root / "faults.csv"
    table.write_text("value,crashes,way\n" + "".join(f"{way},1,{way}\n" for way in range(4)))
    grove(job, TASKS, "function=fragile", "flags=-O1", f"args={table}", "workers_per_allocation=2", "max_allocations=1")
    expect(all(task["attempts"] == 2 for task in expect_done(job, 4, 2)), "two attempts each expected")
    done = grove(root / "hangs", *naps(root, 60, 1), "time_limit=1", "attempts=1", exit_code=1)
    expect("longer than its limit of 1 s" in done.stderr, f"found {done.stderr}")


def drained(root):
    """Allocations of 4 s, tasks of 1 s: none is begun that cannot end, all end in later allocations."""
    job = root / "drained"
    grove(job, *naps(root, 1, 16), "workers_per_allocation=2", "max_allocations=2", "allocation_time=4")
    expect_done(job, 16)
    ends = {number: (begin, end) for number, begin, end in (struct.unpack("<qdd", payload[:24]) for kind, payload in records(job) if kind == HELLO)}
    for task in stats(job):
        expect(task["ended"] < ends[task["worker"]][1], f"{task} ended after its allocation {ends[task['worker']]}")
    expect(len(ends) >= 6, f"at least three allocations expected, found {ends}")


def thousand(root):
    """1,024 tasks are in the journal, and their first allocation is Slurm's, in less than a second."""
    job = root / "thousand"
    begin = time.time()
    driver = start(job, *naps(root, 0.001, 1024), "workers_per_allocation=2", "max_allocations=2")
    wait_until(lambda: any(entry[2].startswith("grove.thousand") for entry in queue()), 20, "an allocation")
    submitted = time.time() - begin
    expect(driver.wait(60) == 0, "the driver failed")
    hello = min(struct.unpack_from("<qd", payload)[1] for kind, payload in records(job) if kind == HELLO)
    first = min(task["started"] for task in expect_done(job, 1024))
    print(f"1,024 tasks: {submitted:.2f} s until Slurm has their allocation, {first - hello:.2f} s from its begin to the first task")
    if os.getloadavg()[0] < 2 * os.cpu_count():  # others that run here count, too
        expect(submitted < 1 and first - hello < 1, "more than a second")


def left_early(root):
    """Allocations that wait in the queue are cancelled when nothing is left for them; clean ends those that run."""
    job = root / "left early"
    grove(job, *naps(root, 1, 6), "workers_per_allocation=2", "max_allocations=4", "max_queued=2")
    expect(not any(entry[1] == "PENDING" and entry[2].startswith("grove.left") for entry in queue()), f"allocations wait for nothing: {queue()}")
    expect_all_gone(job, 5)
    job = root / "cleaned"
    driver = start(job, *naps(root, 30, 6), "workers_per_allocation=2", "max_allocations=3")
    wait_until(lambda: len(processes(job)) == 4, 30, "four workers")
    driver.kill()
    driver.wait()
    output_of(GROVE, "batch", "clean", str(job))
    expect(not job.exists(), "the folder is still there")
    expect_all_gone(job)


def campaign(root):
    """The sphere campaign of the quickstart, smaller: the data set that local workers make."""
    config = Path(__file__).resolve().parents[2] / "examples" / "sphere" / "generate.yaml"
    for where, keys in (("local", []), ("slurm", ["executor=slurm", f"partition={root.name}", "poll_interval=0.5", "submit_interval=0.1", "workers_per_allocation=2", "max_allocations=2"])):
        said = output_of(GROVE, "generate", "--config", str(config), f"output={root}/flows-{where}", "samples=8", "flow.grid=16,16,16", "flow.radius=2",
                         "flow.snapshots=3", "--json", *keys)
        expect(json.loads(said)["done"] == 8, said)
    for array in ("input", "target", "status"):
        found = [{path.relative_to(root / f"flows-{where}"): path.read_bytes() for path in (root / f"flows-{where}" / array).rglob("*") if path.is_file()}
                 for where in ("local", "slurm")]
        expect(len(found[0]) >= 9 and found[0] == found[1], f"'{array}' differs")
    expect(not (root / "flows-slurm.job").exists(), "the job is left")
    expect_all_gone(root / "flows-slurm.job")


def campaign_over_nodes(root):
    """A simulator of two ranks on each of two nodes: each sample is made by one call of it, and holds what all ranks say."""
    solver = 'printf %s%s "$SLURM_PROCID" "$SLURMD_NODENAME$1" | tee part.$SLURM_PROCID >/dev/null; [ "$SLURM_PROCID" = 0 ] || exit 0\n' \
             'until [ -s part.0 ] && [ -s part.1 ] && [ -s part.2 ] && [ -s part.3 ]; do sleep 0.02; done; cat part.? >input.raw; cp input.raw target.raw'
    output_of(GROVE, "generate", "simulator=" + json.dumps(["sh", "-c", solver, "solver", "{sample}"]), f"output={root}/ranked", "samples=2", "input.axes=x",
              "input.shape=4", "target.axes=x", "target.shape=4", "executor=slurm", f"partition={root.name}", "nodes_per_task=2", "ranks_per_task=4", "max_allocations=1",
              "poll_interval=0.5", "submit_interval=0.1")
    one, two = nodes_of(root)
    for sample in (0, 1):
        said = json.loads(output_of(GROVE, "store", "cat", f"{root}/ranked/input", "--json"))["values"][sample]
        expect(struct.pack("<4f", *(value for point in said for value in point)) == f"0{one}{sample}1{one}{sample}2{two}{sample}3{two}{sample}".encode(), said)
    expect_all_gone(root / "ranked.job")


# the longest first
SCENARIOS = [left_early, ranks, drained, preempted, cancelled_allocations, hanging_worker, full_disk, killed_worker, killed_driver, garbage, refused, deaf_scheduler, alone,
             faults, crashing_compiler, map_over_nodes, campaign, campaign_over_nodes, held, srun_over_nodes]


def run(scenario, lanes):
    root, begin = lanes.get(), time.monotonic()
    scenario(root)
    print(f"{scenario.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    lanes.put(root)


def main():
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or os.getuid() != 0:
        print(f"skipped: {', '.join(missing) + ' not found' if missing else 'only root can start Slurm for itself'}")
        sys.exit(SKIPPED)
    signal.signal(signal.SIGTERM, lambda *_: fail("stopped"))
    if sys.argv[1:2] == ["--"]:
        with slurm():
            done = subprocess.run(sys.argv[2:], check=False)
        sys.exit(done.returncode)
    wanted = [scenario for scenario in SCENARIOS if len(sys.argv) < 2 or scenario.__name__ in sys.argv[1:]]
    with slurm() as root:
        lanes = queue_module.SimpleQueue()
        for lane in range(N_LANES):
            (root / f"lane{lane}").mkdir()
            lanes.put(root / f"lane{lane}")
        run(thousand, lanes)  # alone, as it is measured; and it compiles for the others
        pool = concurrent.futures.ThreadPoolExecutor(N_LANES)
        try:
            for done in concurrent.futures.as_completed([pool.submit(run, scenario, lanes) for scenario in wanted]):
                done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


main()
