"""Node jobs: what each node is given, and the command that starts them together."""

import contextlib
import json
import subprocess

import pytest
from ansible.module_utils.scalebook.launch.jobs import (
    ARGUMENT,
    directories,
    env_file,
    job_command,
    layout,
    make_jobs,
    start_command,
    telemetry,
    too_long,
    watch,
)
from ansible.module_utils.scalebook.pages.catalogue import sentence
from cases import cluster, machine
from cases import gpu_case as case
from declared import workload


def members(case, nodes, work="/srv/jobs"):
    return [{**node, "host": node["name"], "work": work} for node in nodes[: case["nodes"]]]


def jobs_of(case, nodes, port=11111):
    return make_jobs(case, 1, "c", members(case, nodes), port)


def test_the_index_in_the_inventory_is_the_task_index():
    jobs = jobs_of(case(4, 8), cluster(4))
    assert [(job["node"], job["env"]["TASK_INDEX"]) for job in jobs] == [
        ("NODE1", "0"),
        ("NODE2", "1"),
        ("NODE3", "2"),
        ("NODE4", "3"),
    ]


def test_every_node_is_given_the_same_workers():
    workers = {job["env"]["WORKER_HOSTS"] for job in jobs_of(case(2, 8), cluster(4))}
    assert workers == {"10.11.0.2:11111,10.11.0.3:11111"}


def test_nodes_that_share_an_address_get_ports_of_their_own():
    jobs = jobs_of(case(3, 1, "cpu"), machine(4, 1))
    assert [job["env"]["PORT"] for job in jobs] == ["11111", "11112", "11113"]


def test_the_gpus_of_a_machine_are_dealt_to_its_nodes():
    jobs = jobs_of(case(2, 4), machine(4, 8))
    assert [job["env"]["CUDA_VISIBLE_DEVICES"] for job in jobs] == ["0,1,2,3", "4,5,6,7"]


def test_nodes_of_their_own_machine_count_gpus_from_zero():
    jobs = jobs_of(case(2, 2), cluster(2))
    assert {job["env"]["CUDA_VISIBLE_DEVICES"] for job in jobs} == {"0,1"}


def test_a_cpu_run_sees_no_gpu():
    assert jobs_of(case(1, 1, "cpu"), machine(1, 1))[0]["env"]["CUDA_VISIBLE_DEVICES"] == ""


def test_trainers_print_the_time_in_utc():
    assert jobs_of(case(1, 1, "cpu"), machine(1, 1))[0]["env"]["TZ"] == "UTC"


def test_jobs_of_different_repeats_have_directories_of_their_own():
    nodes = members(case(1, 8), cluster(1))
    directories = {make_jobs(case(1, 8), n, "c", nodes, 1)[0]["dir"] for n in (1, 2)}
    assert len(directories) == 2


def test_a_node_without_a_place_for_jobs_is_refused():
    with pytest.raises(ValueError, match="NODE1: no directory"):
        make_jobs(case(1, 8), 1, "c", members(case(1, 8), cluster(1), work=None), 1)


def test_a_host_that_acts_for_several_nodes_gets_the_jobs_of_all():
    nodes = [{**node, "host": "here"} for node in members(case(3, 1, "cpu"), machine(4, 1))]
    run = layout(case(3, 1, "cpu"), 1, "c", nodes, 11111)
    assert (run["hosts"], run["names"]) == (["here"], ["NODE1", "NODE2", "NODE3"])
    assert run["jobs_of"] == {"here": run["jobs"]}
    assert run["local_logs"]["NODE2"] == f"{run['jobs'][1]['dir']}/NODE2.log"


def test_a_run_that_is_skipped_has_its_reason_and_no_jobs():
    run = layout(case(2, 8), 1, "c", members(case(1, 8), cluster(1)), 11111, "NODE2 lost", "a note")
    assert (run["skipped"], run["note"], run["jobs"]) == ("NODE2 lost", "a note", [])
    assert (run["jobs_of"], run["local_logs"]) == ({"NODE1": []}, {})


def test_a_job_is_a_directory_of_four_files():
    (job,) = jobs_of(case(1, 8), cluster(1))
    settings = {"interval": 1, "directories": []}
    made = directories(
        [job], workload(log=LOG), case(1, 8), {"stall": 300, "rendezvous": 180}, "exit 0\n", settings
    )
    files = made[job["dir"]]
    assert sorted(files) == ["job.env", "run.sh", "telemetry.json", "watch.json"]
    assert "TASK_INDEX=0\n" in files["job.env"]
    assert json.loads(files["watch.json"])["stall"] == 300
    assert json.loads(files["telemetry.json"]) == telemetry(**settings)


def test_a_trainer_is_given_the_sizes_of_its_model_that_are_declared():
    (job,) = jobs_of(case(1, 8), cluster(1))
    flops = {"sample": "layers", "source": "x", "models": {"m": {"layers": 3}}, "tf32": True}
    declared = workload(log=LOG, models={"cpu": "m", "gpu": "m"}, model_names=["m"], flops=flops)
    limits, settings = {"stall": 1, "rendezvous": 1}, {"interval": 1, "directories": []}
    (files,) = directories([job], declared, case(1, 8), limits, "", settings).values()
    assert 'MODEL_SIZE={"layers": 3}\n' in files["job.env"]


def test_a_value_that_spans_lines_is_no_environment():
    with pytest.raises(ValueError, match="NODE: a value"):
        env_file({"NODE": "a\nTASK_INDEX=7"})


def test_a_cluster_is_started_in_the_order_of_its_nodes():
    nodes = cluster(2)
    command = job_command(jobs_of(case(2, 8), nodes), nodes, "mpirun", ["python3", "run_node.py"])
    assert command[1:7] == ["--host", "10.11.0.2:1,10.11.0.3:1", "-np", "2", "--map-by", "ppr:1:node"]
    assert command[-2:] == ["NODE1=/srv/jobs/NODE1/" + jobs_of(case(2, 8), nodes)[0]["run"], command[-1]]


def test_nodes_of_this_machine_are_ranks_on_localhost():
    nodes = machine(4, 1)
    command = job_command(jobs_of(case(4, 1, "cpu"), nodes), nodes, "mpirun", ["run_node.py"])
    assert command[1:5] == ["--host", "localhost:4", "-np", "4"]


def test_ranks_of_a_workload_without_a_launcher_are_mpirun_s():
    nodes = cluster(2)
    command = job_command(jobs_of(case(2, 8), nodes), nodes, "mpirun", ["run_node.py"], processes=8)
    assert command[1:7] == ["--host", "10.11.0.2:8,10.11.0.3:8", "-np", "16", "--map-by", "ppr:8:node"]


def started_by_srun(processes=1, **launch):
    nodes, chosen = cluster(2), case(2, 8)
    launch = {"launcher": "srun", "run_node": ["run_node.py"], "options": [], "allocation": "7", **launch}
    declared = workload(processes_per_node=processes)
    return start_command(launch, jobs_of(chosen, nodes), nodes, chosen, declared)


def test_srun_starts_a_step_of_the_allocation_that_bears_the_name_of_the_job():
    command = started_by_srun()
    name = jobs_of(case(2, 8), cluster(2))[0]["dir"]
    assert command[:4] == ["srun", "--jobid=7", f"--job-name={name}", "--ntasks=2"]


def test_srun_keeps_the_order_of_the_nodes_only_if_each_process_has_its_node():
    command = started_by_srun(processes=2)
    assert {"--distribution=arbitrary", "--nodelist=NODE1,NODE1,NODE2,NODE2", "--ntasks=4"} <= set(command)
    assert command[command.index("--processes") + 1] == "2"


def test_srun_passes_on_no_other_variables_than_those_of_the_job():
    exported = next(word for word in started_by_srun() if word.startswith("--export="))
    assert exported == "--export=SCALEBOOK_JOB,HOME,USER,LOGNAME,LANG,PATH"


def test_further_arguments_of_srun_come_before_the_program():
    command = started_by_srun(options=["--mpi=pmix"])
    assert command.index("--mpi=pmix") < command.index("run_node.py")


LOG = {"literal": "step=", "step": r"step=(?P<step>\d+)"}


def test_a_node_that_shows_steps_is_held_against_the_limits():
    limits = watch(workload(log=LOG), case(2, 1), 1, stall=60, rendezvous=30)
    assert (limits["stall"], limits["rendezvous"], limits["literal"]) == (60, 30, "step=")


def test_a_known_hang_has_a_limit_of_its_own():
    failures = [{"literal": "sums", "silence": 60, "why": "x"}, {"literal": "no launch", "why": "y"}]
    limits = watch(workload(log=LOG, failures=failures), case(2, 1), 0, stall=600, rendezvous=600)
    assert limits["silences"] == {"sums": 60}


def test_a_node_that_shows_no_steps_is_not_ended_for_its_silence():
    log = {**LOG, "nodes": "first"}
    assert watch(workload(log=log), case(2, 1), 1, stall=60, rendezvous=30) == {}
    assert watch(workload(log=log), case(2, 1), 0, stall=60, rendezvous=30)["stall"] == 60


def test_the_interval_of_the_sampler_is_a_number_also_when_a_template_made_it_a_text():
    assert telemetry("0.5", ["/data"]) == {"interval": 0.5, "directories": ["/data"]}


def test_the_disk_of_files_that_a_pattern_names_is_read_by_the_directory_above_the_pattern():
    places = ["/home/scalebook", "/data/own/*/train-[0-9]*.npy", "/data/own/part?.txt", "/data/vocab.txt"]
    assert telemetry(1, places)["directories"] == ["/data/own", "/data/vocab.txt", "/home/scalebook"]


LONG = "gpu-node-%04d.rack-17.row-b.hall-2.training.cluster.example.org"  # 63 characters with four digits


def command_of(count, name, launcher="mpirun", processes=1):
    nodes = [
        {**node, "name": name % number, "address": name % number, "machine": name % number}
        for number, node in enumerate(cluster(count))
    ]
    chosen = case(count, 8)
    jobs = make_jobs(chosen, 1, "c" * 100, members(chosen, nodes), 11111)
    launch = {"launcher": launcher, "run_node": ["python3", "run_node.py"], "options": [], "allocation": "7"}
    launch["mpirun"] = "mpirun"
    declared = workload(processes_per_node=processes)
    return jobs, start_command(launch, jobs, members(chosen, nodes), chosen, declared)


@pytest.mark.parametrize("processes", [1, 8])
@pytest.mark.parametrize("launcher", ["mpirun", "srun"])
def test_a_thousand_nodes_with_long_names_can_be_launched(launcher, processes):
    jobs, command = command_of(1000, LONG, launcher, processes)
    assert too_long(command, jobs[0]["env"]) is None


def test_a_launch_that_linux_refuses_is_named_with_its_size():
    jobs, command = command_of(4000, LONG)
    assert "longest argument" in sentence(too_long(command, {}))
    assert "longest variable of the environment has" in sentence(too_long(["mpirun"], jobs[0]["env"]))
    assert "its arguments have" in sentence(too_long(["x" * 1000] * 3000, {}))


def test_linux_starts_what_is_not_too_long_and_refuses_what_is():
    longest = "x" * (ARGUMENT - 1)
    for word, problem in ((longest, False), (longest + "x", True)):
        assert bool(too_long(["true", word], {})) is problem
        with pytest.raises(OSError, match="too long") if problem else contextlib.nullcontext():
            subprocess.run(["true", word], check=True)


def test_the_first_node_has_the_command_that_starts_all():
    jobs, command = command_of(2, "NODE%d")
    files = directories(
        jobs,
        workload(log=LOG),
        case(2, 8),
        {"stall": 1, "rendezvous": 1},
        "",
        {"interval": 1, "directories": []},
        command,
    )
    assert [
        json.loads(each["launch.json"]) == command for each in files.values() if "launch.json" in each
    ] == [True]


def test_a_daemon_carries_the_name_of_its_job():
    jobs, command = command_of(2, "NODE%d")
    assert command[command.index("orte_launch_agent") + 1] == f"env SCALEBOOK_JOB={jobs[0]['dir']} orted"


def test_every_node_has_a_limit_for_its_log():
    log = {**LOG, "nodes": "first"}
    assert [watch(workload(log=log), case(2, 1), node, 60, 30, log=1000)["log"] for node in (0, 1)] == [
        10**9
    ] * 2
