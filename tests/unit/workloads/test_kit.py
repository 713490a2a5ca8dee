# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The kit of the workloads: what trainers import, and the head of their node scripts. Needs no torch."""

import os
import socket
import subprocess
import sys
import time

import pytest
from role_files import ROLES, load

KIT = ROLES / "workload/files/kit"
data_stamp = load("workload", "data_stamp")
trainer_kit = load("workload", "trainer_kit")


# Lines and arguments


def test_a_line_has_its_prefix_and_its_values_in_order(capsys):
    trainer_kit.Say("X")(step="1/2", loss="6.91")
    assert capsys.readouterr().out == "X step=1/2 loss=6.91\n"


def test_a_line_is_one_write_where_python_does_not_buffer():
    """Otherwise lines of ranks that print at the same time run into each other, as in Open MPI's output."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # a write is a packet
    program = "import trainer_kit; trainer_kit.Say('X')(batch=2); trainer_kit.refuse('no GPU')"
    env = {**os.environ, "PYTHONPATH": str(KIT)}
    with ours, theirs:
        subprocess.run([sys.executable, "-u", "-c", program], stdout=theirs, env=env, check=False)
        ours.settimeout(5)
        assert [ours.recv(999), ours.recv(999)] == [b"X batch=2\n", b"scalebook: refused: no GPU\n"]


def test_a_trainer_takes_the_arguments_of_a_case_and_its_own():
    parser = trainer_kit.parser({"base": 1, "tiny": 2}, ["fp32"])
    parser.add_argument("--compile", type=trainer_kit.boolean)
    words = "--device cpu --model tiny --dtype fp32 --batch 16 --steps 120 --compile true".split()
    args = parser.parse_args(words)
    assert (args.model, args.batch, args.steps, args.accumulation, args.compile) == ("tiny", 16, 120, 1, True)


@pytest.mark.parametrize("wrong", [["--model", "large"], ["--compile", "yes"], ["--bat", "8"]])
def test_a_trainer_refuses_other_arguments(wrong, capsys):
    parser = trainer_kit.parser(["tiny"], ["fp32"])
    parser.add_argument("--compile", type=trainer_kit.boolean)
    words = "--device cpu --model tiny --dtype fp32 --batch 16 --steps 120".split()
    with pytest.raises(SystemExit):
        parser.parse_args(words + wrong)


@pytest.mark.parametrize(("loss", "is_one"), [(1.5, True), (float("nan"), False), (float("inf"), False)])
def test_a_loss_that_is_not_finite_is_not_a_number(loss, is_one):
    assert trainer_kit.is_number(loss) is is_one


def test_the_first_rank_of_a_node_says_that_all_ranks_have_its_weights(capsys):
    for first in (True, False):
        trainer_kit.finish(trainer_kit.Say("X"), first, [[3.0, 5.0]] * 2, 12)
    sums = "X weights_sum=3.000000000e+00 weights_sum_of_squares=5.000000000e+00\n"
    assert capsys.readouterr().out == f"X steps_done=12\n{sums}X weights=agree end=true\n"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_end_a_run_with_one_rank_too(number):
    with pytest.raises(SystemExit, match="the weights are not finite"):
        trainer_kit.finish(print, True, [[number, 5.0]], 12)


def test_a_rank_that_fails_does_not_wait_for_the_others():
    program = "import atexit, trainer_kit; atexit.register(print, 'waits'); trainer_kit.run(lambda: 1 / 0)"
    env = {**os.environ, "PYTHONPATH": str(KIT)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert (done.returncode, done.stdout, "ZeroDivisionError" in done.stderr) == (1, "", True)


def test_a_trainer_ends_with_the_process_that_started_it(tmp_path):
    trainer = "import trainer_kit, os, time; trainer_kit.die_with_parent(); print(os.getpid(), flush=True)"
    parent = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdout=-1)"
    parent += "; print(p.stdout.readline().decode().strip(), flush=True)"
    argv = [sys.executable, "-c", parent, trainer + "; time.sleep(60)"]
    done = subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(KIT)}, capture_output=True, text=True)
    pid = int(done.stdout)
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    pytest.fail("the trainer outlives the process that started it")


def test_the_last_line_of_a_refused_run_says_why():
    program = """
try:
    import trainer_kit
    print("some line")
    trainer_kit.refuse(ValueError("/data has 4 images, needed are 8"))
finally:
    print("Horovod waits for the other ranks")
"""
    env = {**os.environ, "PYTHONPATH": str(KIT)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=env, check=False
    )
    assert (done.stdout, done.returncode) == (
        "some line\nscalebook: refused: /data has 4 images, needed are 8\n",
        2,
    )


# Data


def test_data_are_complete_once_their_parameters_are_written(tmp_path):
    assert data_stamp.read(tmp_path) is None
    data_stamp.write(tmp_path, {"seed": 1, "length": 64})
    assert data_stamp.read(tmp_path) == {"length": 64, "seed": 1}


def test_data_of_other_parameters_are_made_again(tmp_path):
    folder, written = tmp_path / "images", []

    def make(parameters):
        def write():
            written.append(sorted(path.name for path in folder.iterdir()))
            (folder / "train.rec").touch()

        return data_stamp.make(folder, parameters, write)

    assert [make({"images": count}) for count in (2, 2, 3)] == ["made", "unchanged", "made"]
    assert written == [[], []]


def test_data_that_were_not_finished_are_made_again(tmp_path):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data_stamp.make(tmp_path, {"images": 2}, stop)
    assert data_stamp.make(tmp_path, {"images": 2}, lambda: None) == "made"


def test_a_half_written_stamp_is_none(tmp_path):
    (tmp_path / "made.json").write_text('{"seed"')
    assert data_stamp.read(tmp_path) is None


# The head of a node script


def head(installed="gpu", **other):
    """Source the head as a node script does; return its exit status, its message and the environment then."""
    env = {
        "PATH": os.environ["PATH"],
        "DEVICE": "gpu",
        "NNODES": "2",
        "GPUS_PER_NODE": "1",
        "MASTER_ADDR": "10.0.0.1",
        "NODE": "N1",
    }
    script = f"set -u; WORKLOAD=my_bert INSTALLED_DEVICE={installed}; . {KIT}/run_head.sh; env"
    done = subprocess.run(["sh", "-c", script], env={**env, **other}, capture_output=True, text=True)
    pairs = dict(line.split("=", 1) for line in done.stdout.splitlines())
    return done.returncode, done.stderr, pairs


@pytest.mark.parametrize(("installed", "device"), [("gpu", "gpu"), ("gpu", "cpu"), ("cpu", "cpu")])
def test_a_run_on_an_installed_device_starts(installed, device):
    assert head(installed, DEVICE=device)[0] == 0


def test_a_run_on_gpus_with_software_for_cpus_is_refused_with_what_to_run():
    status, message, _ = head("cpu")
    assert status == 2
    assert "scalebook: refused: my_bert is installed for a cpu, the run needs a gpu" in message
    assert "-e workload=my_bert -e my_bert_device=gpu" in message


def test_the_environment_of_another_python_is_removed():
    _, _, env = head(PYTHONHOME="/x", PYTHONPATH="/x", PYTHONSTARTUP="/x")
    assert {"PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP"}.isdisjoint(env)
    assert (env["PYTHONUNBUFFERED"], env["PYTHONNOUSERSITE"]) == ("1", "1")


def test_simulated_nodes_talk_over_the_loopback_interface():
    assert head(MASTER_ADDR="127.0.0.1")[2]["NCCL_SOCKET_IFNAME"] == "lo"
    assert "NCCL_SOCKET_IFNAME" not in head()[2]


def test_a_run_on_cpus_sees_no_gpu():
    assert head(DEVICE="cpu")[2]["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(("nodes", "gpus"), [("2", "1"), ("1", "2")])
def test_nccl_reports_its_ranks_and_network_where_there_are_several_gpus(nodes, gpus):
    assert head(NNODES=nodes, GPUS_PER_NODE=gpus)[2]["NCCL_DEBUG"] == "INFO"
    assert "NCCL_DEBUG" not in head(NNODES="1", GPUS_PER_NODE="1")[2]


def test_the_flight_recorder_of_torch_has_a_pipe_in_the_job_of_several_gpus(tmp_path):
    job = {"JOB_DIR": str(tmp_path)}
    environment = head(NNODES="2", **job)[2]
    assert environment["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] == environment["TORCH_FR_DUMP_TEMP_FILE"]
    assert environment["TORCH_FR_DUMP_TEMP_FILE"] == f"{tmp_path}/flight."
    assert list(tmp_path.iterdir()) == []
    without_pipe = [head(NNODES="1", GPUS_PER_NODE="1", **job), head(NNODES="2", JOB_DIR=f"{tmp_path}/none")]
    assert [each[2].get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE") for each in without_pipe] == [None, None]


@pytest.mark.parametrize(
    ("name", "ours", "of_user"),
    [("NCCL_DEBUG", "INFO", "WARN"), ("NCCL_DEBUG_SUBSYS", "INIT,NET,GRAPH", "ALL")],
)
def test_what_nccl_reports_may_be_chosen_by_the_user(name, ours, of_user):
    assert head(NNODES="2")[2][name] == ours
    assert head(NNODES="2", **{name: of_user})[2][name] == of_user


# The end


def test_no_program_with_a_process_group_ends_by_the_shutdown_of_the_interpreter():
    """It aborts some runs that have done everything: see torch_end.leave."""
    texts = {str(file): file.read_text() for file in ROLES.glob("*/files/**/*.py")}
    ending = {name for name, text in texts.items() if "destroy_process_group" in text}
    assert str(KIT / "torch_end.py") in ending
    assert [name for name in ending if "os._exit(0)" not in texts[name]] == []
