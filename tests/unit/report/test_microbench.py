"""microbench: what is counted, what stands beside what, and that the published table is the published one."""

import json
import lzma
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest
import results_verify
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge import mfu
from ansible.module_utils.scalebook.judge import microbench_records as judge
from ansible.module_utils.scalebook.pages import terminal
from ansible.module_utils.scalebook.report import microbench, microbench_files
from run_module import call_module

ROOT = Path(__file__).resolve().parents[3]
GPUS = ROOT / "data/gpus.csv"
PUBLISHED = ROOT / "data/microbench-published.csv"


def gpus():
    return mfu.read_peaks(GPUS.read_text().splitlines())


def published():
    return judge.read_published(PUBLISHED.read_text().splitlines())


def row(benchmark, variant, tflops, **shape):
    reason = None if tflops else message("microbench.oom")
    seconds = 1.0 if tflops else None
    return {
        "benchmark": benchmark,
        "variant": variant,
        "shape": shape,
        "seconds": seconds,
        "tflops": tflops,
        "gbytes_per_second": None,
        "reason": reason,
    }


def compute(name="NVIDIA H100 80GB HBM3", rows=None, **other):
    rows = rows or [
        row("matmul", "fp16", 20.0, n=128),
        row("matmul", "fp16", 700.0, n=8192),
        row("vector", "fp32", 0.5, n=1 << 16),
        row("vector", "fp32", 0.3, n=1 << 22),
        row("bert", "forward", 210.0, batch=128, seq=128, hidden=1024),
        row("bert", "forward", None, batch=128, seq=512, hidden=1024),
    ]
    values = {
        "schema": 1,
        "kind": "compute",
        "host": "node",
        "device": "gpu",
        "name": name,
        "torch": "2.11.0",
        "cuda": "13.0",
        "size": "full",
        "layer_dtype": "fp16",
        "layer_attention": "eager",
        "seconds": 3.0,
        "measurements": rows,
    }
    return {**values, **other}


def collectives(**other):
    rows = [
        {
            "collective": name,
            "bytes": 1 << 20,
            "seconds": 1e-4,
            "algbw_gb_per_second": 10.48576,
            "busbw_gb_per_second": 18.35008,
        }
        for name in ("all_reduce", "all_gather")
    ]
    values = {"schema": 1, "kind": "collectives", "device": "gpu", "backend": "nccl", "nccl": "2.28.3"}
    return {**values, "world_size": 8, "nodes": 2, "measurements": rows, **other}


def rows_of(*devices):
    """Return the cells of the table by their title."""
    return {title: cells for title, *cells in terminal.texts(microbench.table(devices))}


@pytest.fixture
def measured():
    return judge.measured(compute(), gpus())


def test_the_published_table_is_the_seeds():
    by_name = {device.name: device.figures for device in published()}
    assert [by_name[name]["matmul", "fp32"] for name in ("A100", "A6000", "V100", "3090 Ti")] == [
        116,
        60,
        14,
        42,
    ]
    assert [by_name[name]["bert", "forward_backward"] for name in ("A100", "V100")] == [136, 64]
    assert by_name["V100"]["t5_decoder", "forward"] == 26
    assert by_name["A6000"]["vector", "fp32"] == 0.082


def test_a_sweep_counts_by_its_best(measured):
    assert measured.figures["matmul", "fp16"] == 700.0


def test_a_vector_counts_by_the_longest_since_shorter_ones_fit_into_a_cache(measured):
    assert measured.figures["vector", "fp32"] == 0.3


def test_a_shape_without_memory_counts_nothing(measured):
    assert measured.figures["bert", "forward"] == 210.0


def test_the_theory_of_a_vector_is_the_memorys(measured):
    assert measured.peak(("vector", "fp32")) == pytest.approx(3350 / 8 / 1000)


def test_the_theory_of_a_layer_is_that_of_its_dtype():
    device = judge.measured(compute(layer_dtype="fp32"), gpus())
    assert device.peak(("bert", "forward")) == 494.7
    assert device.peak(("matmul", "fp16")) == 989.4


def test_an_unknown_device_has_no_theory():
    assert judge.measured(compute("Some CPU"), gpus()).shares() == {}


@pytest.mark.parametrize(
    ("name", "fp32", "fp16"),
    [
        ("Tesla P40", 12.0, None),
        ("Tesla V100-SXM2-16GB", 15.7, 125.0),
        ("Tesla V100-PCIE-32GB", 14.0, 112.0),
        ("Tesla V100S-PCIE-32GB", 16.4, 130.0),
        ("NVIDIA A100-SXM4-40GB", 156.0, 312.0),
        ("A100-SXM-80GB", 156.0, 312.0),
        ("NVIDIA A100 80GB PCIe", 156.0, 312.0),
        ("NVIDIA RTX A6000", 77.4, 154.8),
        ("NVIDIA GeForce RTX 3090 Ti", 40.0, 80.0),
        ("NVIDIA L4", 60.0, 121.0),
        ("NVIDIA L40S", 183.2, 362.1),
        ("NVIDIA A10", 62.5, 125.0),
        ("NVIDIA H100 80GB HBM3", 494.7, 989.4),
        ("NVIDIA H100 PCIe", 378.3, 756.5),
        ("NVIDIA H100 NVL", 417.7, 835.5),
        ("NVIDIA H200", 494.7, 989.4),
        ("NVIDIA B200", 1100.0, 2250.0),
    ],
)
def test_a_name_of_the_driver_has_the_peaks_of_its_own_model(name, fp32, fp16):
    [_pattern] = [pattern for pattern in gpus() if re.fullmatch(pattern, name)]
    sheet = judge.measured(compute(name), gpus()).sheet
    assert (sheet["fp32"], sheet.get("fp16")) == (fp32, fp16)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A10G",
        "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
        "NVIDIA L40",
        "NVIDIA H200 NVL",
        "NVIDIA GH200 480GB",
        "NVIDIA GB300",
        "NVIDIA GeForce RTX 3090",
        "NVIDIA RTX 6000 Ada Generation",
        "Tesla V100-FHHL-16GB",
        "Tesla P4",
    ],
)
def test_no_model_takes_the_peaks_of_another(name):
    assert mfu.of_gpu(gpus(), name) is None


def test_a_report_on_an_unknown_gpu_says_that_no_peak_is_known():
    result = compute("NVIDIA L40")
    notes = judge.notes([judge.measured(result, gpus())], result)
    assert message("microbench.no-peak", name="NVIDIA L40") in notes


def test_the_table_sets_the_device_beside_the_published_ones(measured):
    rows = rows_of(measured, *published())
    assert rows["TFLOP/s"] == ["NVIDIA H100 80GB HBM3", "A100", "A6000", "V100", "3090 Ti", "4090"]
    assert rows["Matrix product, FP32 (TF32) / FP16"][:2] == ["– / 700", "116 / 230"]


def test_the_chart_is_well_formed_and_says_share_and_figures(measured):
    svg = microbench.chart([measured, *published()])
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "71% · 700 of 989" in texts
    assert "74% · 116 of 156" in texts


def test_without_a_theory_there_is_no_chart():
    assert microbench.chart([judge.measured(compute("Some CPU"), gpus())]) == ""


def test_a_name_with_markup_stays_text():
    svg = microbench.chart([judge.measured(compute("NVIDIA H200"), gpus())._replace(name="H100 <script>")])
    assert "<script>" not in svg


def test_the_page_names_what_was_not_measured(measured):
    [_others, note] = judge.notes([measured], compute())
    assert note["code"] == "microbench.not-measured"
    assert note["values"]["operation"] == judge.label(("bert", "forward"))
    assert note["values"]["shape"] == "batch=128 seq=512 hidden=1024"
    assert note["values"]["reason"]["code"] == "microbench.oom"


def test_more_than_the_theory_is_told_with_the_likely_cause():
    fast = compute("NVIDIA H200", [row("vector", "fp32", 0.642, n=1 << 22)])
    [_others, note] = judge.notes([judge.measured(fast, gpus())], fast)
    assert (note["code"], note["values"]["rate"]) == ("microbench.above", 0.642)
    assert note["values"]["cause"]["code"] == "microbench.cached"


@pytest.fixture
def results(tmp_path):
    (tmp_path / "compute.json").write_text(json.dumps(compute()))
    (tmp_path / "collectives.json").write_text(json.dumps(collectives()))
    return tmp_path


def report(results, language="en", network="fastest", **expect):
    given = {"path": str(results), "published": str(PUBLISHED), "gpus": str(GPUS), "expect": expect}
    given |= {"network": network}
    given |= {"templates": str(ROOT / "templates"), "report_language": language}
    return microbench_files.report(given, True)


def started(results, **ends):
    """Write what role microbench writes of a start on two nodes; `ends` are the reasons of what failed."""
    entry = {"nodes": ["NODE1", "NODE2"], "processor": "Intel(R) Xeon(R) Gold 6148", "memory_gib": 377.4}
    (results / "hardware.json").write_text(json.dumps([entry]))
    nodes = {"compute": ["NODE1"], "collectives": ["NODE1", "NODE2"]}
    jobs = {
        kind: {
            "nodes": nodes[kind],
            "rc": int(kind in ends),
            "seconds": 12.5,
            "started": "2026-11-24T22:00:00Z",
            "ended": "2026-11-24T22:00:12Z",
            "reason": ends.get(kind),
        }
        for kind in nodes
    }
    command = "ansible-playbook -i inventory/two microbench.yml -e nodes=2"
    about = {"scalebook": {"commit": "c0ffee"}, "command": command, "jobs": jobs}
    (results / "about.json").write_text(json.dumps(about))
    for kind in ends:
        (results / f"{kind}.json").unlink()


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"kind": "campaign"}, "kind is 'campaign', must be 'compute'"),
        ({"schema": 2}, "schema is 2, must be 1"),
        ({"measurements": []}, "it holds no measurements"),
    ],
)
def test_a_file_that_is_no_result_is_refused(results, wrong, problem):
    (results / "compute.json").write_text(json.dumps(compute(**wrong)))
    with pytest.raises(ValueError, match=problem):
        report(results)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"world_size": 1}, "world_size is 1, must be 8"),
        ({"nodes": 1}, "nodes is 1, must be 2"),
        ({"backend": "gloo"}, "backend is 'gloo', must be 'nccl'"),
    ],
)
def test_collectives_of_another_group_are_refused(results, wrong, problem):
    (results / "collectives.json").write_text(json.dumps(collectives(**wrong)))
    with pytest.raises(ValueError, match=problem):
        report(results, nodes=2, devices=8, device="gpu")


def records(results):
    return json.loads((results / "microbench.json").read_text())["records"]


def test_every_measurement_has_a_status_and_the_reason_for_it(results):
    report(results)
    rows = [row for record in records(results) for row in record["measurements"]]
    assert [row["status"] for row in rows] == ["ok"] * 5 + ["oom"] + ["ok"] * 2
    assert [row["reason"] for row in rows if row["reason"]] == [message("microbench.oom")]
    assert "7 of 8 measurements count." in (results / "report.md").read_text()


def test_a_record_says_where_and_with_what_it_was_measured_and_how_to_repeat_it(results):
    started(results)
    report(results)
    schema = json.loads((ROOT / "docs" / "reference" / "microbench.schema.json").read_text())
    jsonschema.validate(json.loads((results / "microbench.json").read_text()), schema)
    operations, group = records(results)
    assert (operations["nodes"], group["nodes"]) == (["NODE1"], ["NODE1", "NODE2"])
    assert [entry["nodes"] for entry in operations["hardware"]] == [["NODE1"]]
    assert operations["software"] == [{"nodes": ["NODE1"], "torch": "2.11.0", "cuda": "13.0"}]
    assert operations["job"]["rc"] == 0
    assert {each["scalebook"]["commit"] for each in (operations, group)} == {"c0ffee"}
    assert group["command"] == "ansible-playbook -i inventory/two microbench.yml -e nodes=2"
    for text in ((results / f"report.{kind}").read_text() for kind in ("html", "md")):
        assert "Software: PyTorch 2.11.0; CUDA 13.0; NCCL 2.28.3; scalebook c0ffee" in text
        assert "Repeat it: " in text and "microbench.yml -e nodes=2" in text


@pytest.mark.parametrize("kind", ["compute", "collectives"])
def test_a_program_that_failed_has_a_record_and_stands_on_the_page(results, kind):
    started(results, **{kind: f"it ended with status 1; its output is in {kind}.log: RuntimeError"})
    answer = report(results, nodes=2, devices=8, device="gpu")
    [said] = answer["unmeasured"]
    assert said == f"{kind}: it ended with status 1; its output is in {kind}.log: RuntimeError"
    assert {each["kind"]: each["status"] for each in records(results)}[kind] == "failed"
    assert said in (results / "report.html").read_text()
    assert f"failed: {kind}: it ended with status 1" in (results / "report.md").read_text()


def test_without_any_result_the_page_says_what_failed_alone(results):
    started(results, compute="it ended with status 1", collectives="it ended with status 1")
    assert len(report(results)["unmeasured"]) == 2
    assert (results / "report.md").read_text().startswith("# Micro-benchmarks\n")


def test_a_result_that_a_program_left_before_it_failed_does_not_count(results):
    kept = (results / "collectives.json").read_text()
    started(results, collectives="it ended with status 124")
    (results / "collectives.json").write_text(kept)
    report(results)
    assert [each["status"] for each in records(results)] == ["ok", "failed"]
    assert "18.350" not in (results / "report.html").read_text()


def test_nodes_that_shared_a_machine_are_called_simulated(results):
    (results / "collectives.json").write_text(json.dumps(collectives(hosts=["vm"])))
    report(results)
    assert "1 machine, 2 simulated nodes" in (results / "report.html").read_text()


def test_the_files_are_verified_as_those_of_a_campaign(results):
    report(results)
    good = "All 2 files are what was reported."
    assert call_module(results_verify, path=str(results))["display"] == good
    (results / "compute.json").write_text(json.dumps(compute(host="other")))
    report(results)
    [problem] = call_module(results_verify, path=str(results))["problems"]
    assert (problem["file"], problem["what"]) == ("compute.json", "changed")


@pytest.mark.parametrize("content", ["[]", '{"jobs": {"other": {}}}', '{"jobs": 1}', "{"])
def test_an_about_json_that_role_microbench_did_not_write_is_refused(results, content):
    (results / "about.json").write_text(content)
    with pytest.raises(ValueError, match="about.json: is not what role microbench writes"):
        report(results)


def test_the_report_names_the_hardware_of_the_nodes(results):
    entry = {"nodes": ["NODE1"], "processor": "Intel(R) Xeon(R) Gold 6148", "sockets": 2, "memory_gib": 377.4}
    (results / "hardware.json").write_text(json.dumps([entry]))
    report(results)
    said = "Hardware: each node: Intel(R) Xeon(R) Gold 6148, 2 sockets; 377 GiB memory"
    assert said in (results / "report.md").read_text() and said in (results / "report.html").read_text()
    assert records(results)[0]["hardware"] == [entry]


def test_results_of_before_hardware_was_written_say_so(results):
    report(results)
    assert "Hardware: not recorded" in (results / "report.md").read_text()


def test_a_file_that_does_not_describe_hardware_is_refused(results):
    (results / "hardware.json").write_text('{"nodes": []}')
    with pytest.raises(ValueError, match="hardware.json: is not a description of hardware"):
        report(results)


def test_the_report_is_table_picture_and_json(results):
    answer = report(results, nodes=2, devices=8, device="gpu")
    assert answer["changed"] and "18.350" in answer["display"]
    made = {path.name for path in results.iterdir()}
    assert made >= {"report.html", "report.md", "theory.svg", "microbench.json", "manifest.json"}
    best = json.loads((results / "microbench.json").read_text())["best"]
    assert {"benchmark": "matmul", "variant": "fp16", "tflops": 700.0, "peak_tflops": 989.4} in best


def test_the_same_results_change_no_report(results):
    report(results)
    assert not report(results)["changed"]


def test_collectives_that_are_not_there_are_missed(results):
    (results / "collectives.json").unlink()
    with pytest.raises(ValueError, match=r"collectives.json: was not written"):
        report(results, nodes=2, devices=8, device="gpu")


def test_the_page_and_the_markdown_hold_the_same_table(results):
    report(results)
    html, plain = ((results / f"report.{kind}").read_text() for kind in ("html", "md"))
    assert "<td>– / 700</td>" in html and " | – / 700 | " in plain
    assert "<svg" in html and "![Theory and measured](theory.svg)" in plain
    assert "8 devices, 2 nodes" in html and "8 devices, 2 nodes" in plain


def test_a_result_that_has_changed_since_its_report_is_named(results):
    report(results)
    (results / "compute.json").write_text(json.dumps(compute(host="other")))
    report(results)
    page = (results / "report.html").read_text()
    assert "compute.json has been changed since it was reported; manifest.json keeps its first" in page


def test_a_device_name_with_markup_stays_text_in_the_page(results):
    (results / "compute.json").write_text(json.dumps(compute("H100 <script>alert(1)</script> | *a*")))
    report(results)
    assert "<script>alert" not in (results / "report.html").read_text()
    assert "<script>" not in (results / "report.md").read_text()


PRICE = judge.Price(5.0, "CNY/gpu hour", "a list", "2026")


def test_the_table_has_memory_bandwidth_price_and_work_per_price(measured):
    rows = rows_of(measured._replace(prices=[PRICE]), *published())
    assert rows["Memory, GB / bandwidth, GB/s"][:3] == ["80 / 3350", "80 / 2039", "48 / 768"]
    assert rows["Price"][:3] == ["5 CNY/gpu hour", "16,000 USD", "4,000 USD"]
    work = measured.figures["matmul", "fp16"] / 5 * 1000
    line = rows["matrix product, FP16: GFLOP/s per price"]
    assert line[:3] == [f"{work:.0f} per CNY/gpu hour", "14 per USD", "24 per USD"]


def test_every_price_is_shown_with_its_source_and_date(measured):
    notes = judge.notes([measured._replace(prices=[PRICE]), *published()], None)
    own, theirs = [note["values"] for note in notes if note["code"] == "microbench.prices"]
    assert own["prices"][0]["values"] == {"device": measured.name, "amount": 5.0, "unit": "CNY/gpu hour"}
    assert own["source"] == message("microbench.dated", source="a list", date="2026")
    assert theirs["source"]["code"] == "microbench.undated"


def test_a_device_without_a_price_has_none(measured):
    assert "Price" not in rows_of(measured)


def kept_lines(results, *of_nodes, kind="InfiniBand"):
    """Write what NCCL said on each node, as collectives.py does; both nodes have a network of this kind."""
    text = "".join(f"NODE {number}\n{lines}" for number, lines in enumerate(of_nodes))
    (results / "collectives.nccl.xz").write_bytes(lzma.compress(text.encode()))
    networks = [{"name": "mlx5_0", "kind": kind}]
    (results / "hardware.json").write_text(json.dumps([{"nodes": ["NODE1", "NODE2"], "networks": networks}]))


IB = (ROOT / "tests/data/nccl/ib_2n4g.NODE1.log").read_text()
SOCKETS = (
    "h:7:7 [0] NCCL INFO NET/Socket : Using [0]eth0:192.0.2.2<0>\n"
    "h:7:9 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n"
)


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_the_report_says_what_nccl_connected_the_devices_by(results, name):
    started(results)
    kept_lines(results, IB, IB.replace("NET/IB/1/GDRDMA", "NET/IB/1"))
    report(results)
    text = (results / name).read_text()
    assert "NCCL connected the devices by NET/IB, P2P/CUMEM, NVLink, NVLS" in text
    assert "GPUDirect RDMA was off" in text
    assert records(results)[1]["nccl"]["transports"] == {"NET/IB": 6, "P2P/CUMEM": 2}


@pytest.mark.parametrize(
    ("kind", "network", "status"),
    [
        ("InfiniBand", "fastest", "failed"),
        ("RoCE", "fastest", "failed"),
        ("InfiniBand", "any", "ok"),
        ("Ethernet", "fastest", "ok"),
    ],
)
def test_collectives_over_sockets_are_refused_where_something_faster_is_up(results, kind, network, status):
    started(results)
    kept_lines(results, SOCKETS, SOCKETS, kind=kind)
    unmeasured = report(results, network=network)["unmeasured"]
    record = records(results)[1]
    assert (record["status"], bool(record["measurements"])) == (status, status == "ok")
    assert record["nccl"]["adapters"] == ["eth0"]
    assert ["NCCL used sockets" in each for each in unmeasured] == [True] * (status == "failed")
