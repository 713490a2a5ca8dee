# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reading a node: every key from the thing itself, `none` where it is not there."""

import json
import os
import struct
import sys
import venv
from pathlib import Path

import pytest
import stack_check_info
from ansible.module_utils.scalebook.files import sha256_of
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.provision import stack_table
from role_files import load
from run_module import call_module, run_module

NODE = load("stack_check", "stack_check_info")


def read(question):
    """Return the stack of this node as the module would, its cache written."""
    cache = NODE.Cache(question.get("cache", ""))
    stack = NODE.read(question, cache)
    assert cache.write() == ""
    return stack


@pytest.fixture
def says(monkeypatch):
    """Return a function that lets commands answer: says({"nvidia-smi": (status, stdout, stderr)})."""

    def put(answers):
        nothing = (None, "", "not found")
        monkeypatch.setattr(NODE, "run", lambda name, *_, **__: answers.get(Path(name).name, nothing))

    return put


@pytest.fixture
def texts(monkeypatch):
    """Return a function that puts texts where the node's files would be: texts({path: text})."""

    def put(files):
        monkeypatch.setattr(NODE, "read_text", lambda path: files.get(path, ""))
        monkeypatch.setattr(NODE.glob, "glob", lambda pattern: [p for p in files if Path(p).match(pattern)])

    return put


def test_the_answer_has_the_keys_that_are_compared():
    assert list(read({})) == list(stack_table.KEYS)


def test_what_is_not_there_is_none(says, texts):
    says({})
    texts({})
    row = read({})
    absent = ["driver", "cuda", "cudnn", "mpi", "horovod", "framework", "commit", "data", "script"]
    assert {key: row[key] for key in absent} == dict.fromkeys(absent, "none")


def test_the_driver_is_what_nvidia_smi_says(says):
    says({"nvidia-smi": (0, "440.33.01\n440.33.01\n", "")})
    assert NODE.driver() == "440.33.01"


def test_a_warning_of_a_damaged_inforom_is_no_version(says):
    says({"nvidia-smi": (14, "550.90.07\nWARNING: infoROM is corrupted at gpu 0000:05:00.0\n", "")})
    assert NODE.driver() == "550.90.07"


def test_a_driver_that_does_not_answer_is_told_with_its_words(says, texts):
    says({"nvidia-smi": (18, "Failed to initialize NVML: Driver/library version mismatch\n", "")})
    texts({"/sys/module/nvidia/version": "440.33.01\n"})
    assert NODE.driver() == (
        "440.33.01 (nvidia-smi: Failed to initialize NVML: Driver/library version mismatch)"
    )


DPKG = """cuda-cudart-10-1 10.1.243-1 installed
cuda-cudart-10-2 10.2.89-1 installed
cuda-toolkit-10-2 10.2.89-1 installed
cuda-toolkit-12-config-common 12.8.90-1 installed
cuda-toolkit-9-0  not-installed
libcudnn7 7.6.5.32-1+cuda10.2 installed
libcudnn7-dev 7.6.5.32-1+cuda10.2 installed
libcudnn8 8.0.4.30-1+cuda10.2 config-files
libnccl2 2.7.3-1+cuda10.2 installed
"""


def test_packages_tell_cuda_cudnn_and_nccl(says):
    says({"dpkg-query": (0, DPKG, "")})
    row = read({})
    assert row["cuda"] == "10.2.89-1, 10.1.243-1"
    assert row["cudnn"] == "7.6.5.32-1+cuda10.2"
    assert row["nccl"] == "2.7.3-1+cuda10.2"


def test_without_packages_the_toolkits_own_files_tell(says, texts):
    says({})
    texts(
        {
            "/usr/local/cuda-10.2/version.txt": "CUDA Version 10.2.89\n",
            "/usr/local/cuda-12.4/version.json": '{"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}}',
            "/usr/local/cuda-10.2/include": "",
            "/usr/local/cuda-10.2/include/cudnn.h": (
                "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 6\n#define CUDNN_PATCHLEVEL 5\n"
            ),
        }
    )
    row = read({})
    assert (row["cuda"], row["cudnn"]) == ("12.4.1, 10.2.89", "7.6.5")


def said_by_python(**packages):
    return (0, json.dumps({"version": "3.11.7", "packages": packages}), "")


def test_libraries_of_the_frameworks_own_are_told_beside_the_systems(says, texts):
    texts({})
    packages = {"torch": "2.13.0", "nvidia_nccl-cu12": "2.27.5", "nvidia-cuda-runtime": "13.0.96"}
    says({"dpkg-query": (0, DPKG, ""), "python": said_by_python(**packages)})
    row = read({"python": "/venv/bin/python", "framework": ["torch"]})
    assert sentence(row["nccl"]) == "2.7.3-1+cuda10.2, 2.27.5 of the framework's own"
    assert sentence(row["nccl"], "zh") == "系统 2.7.3-1+cuda10.2，框架自带 2.27.5"
    assert sentence(row["cuda"]).endswith(", 13.0.96 of the framework's own")
    assert (row["framework"], row["python"]) == ("torch 2.13.0", "3.11.7")


def test_the_framework_is_the_package_that_is_installed(says, texts):
    texts({})
    says({"python": said_by_python(**{"tensorflow-cpu": "2.3.0"})})
    row = read({"python": "/venv/bin/python", "framework": ["tensorflow", "tensorflow-cpu"]})
    assert row["framework"] == "tensorflow-cpu 2.3.0"


def test_an_interpreter_that_does_not_start_is_told(says, texts):
    texts({})
    says({"python": (127, "", "line\nerror while loading shared libraries: libpython3.8.so.1.0\n")})
    row = read({"python": "/venv/bin/python"})
    assert row["python"] == (
        "/venv/bin/python does not run: error while loading shared libraries: libpython3.8.so.1.0"
    )


def test_a_real_interpreter_tells_its_version_and_packages():
    version, packages = NODE.interpreter(sys.executable)
    assert version.startswith("%d.%d." % sys.version_info[:2])
    assert packages["pytest"] == pytest.__version__


@pytest.fixture
def horovod(tmp_path):
    """Return a function: with {framework: source of its extension}, ask an interpreter for its Horovod."""
    venv.create(tmp_path, with_pip=False)
    (packages,) = tmp_path.glob("lib/python*/site-packages")

    def ask(extensions):
        for name, source in {".": "", **extensions}.items():
            (packages / "horovod" / name).mkdir(parents=True)
            (packages / "horovod" / name / "__init__.py").write_text(source)
        return NODE.horovod(str(tmp_path / "bin/python"), {"horovod": "0.28.1"}, NODE.Cache(""))

    return ask


BUILT = "\n".join(
    f"def {name}_built(): return {value}"
    for name, value in {"mpi": True, "gloo": False, "nccl": 21805, "ddl": False}.items()
)


def test_horovods_operations_are_those_it_was_built_with(horovod):
    missing = "raise ImportError('Extension horovod.tensorflow has not been built')"
    assert horovod({"tensorflow": missing, "torch": f"print('a greeting')\n{BUILT}"}) == "0.28.1 NCCL+MPI"


def test_a_horovod_whose_library_cannot_be_loaded_has_no_operations(horovod):
    said = horovod({"torch": "raise OSError('libmpi.so.40: cannot open shared object file')"})
    assert said.startswith(
        "0.28.1 no operations (status 1: tensorflow: No module named 'horovod.tensorflow', "
    )
    assert "torch: libmpi.so.40: cannot open shared object file" in said


# -- commit and patch ----------------------------------------------------------------------------------


@pytest.fixture
def patched(tmp_path):
    file = tmp_path / "run_pretraining.py"
    file.write_text("patched")
    digest = sha256_of(file)
    return {"file": str(file), "before": "0" * 64, "after": digest}


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "patched"),
        ({"after": "1" * 64}, "patched and altered"),
        ({"file": "/nowhere"}, "patch missing"),
    ],
)
def test_the_patch_state_is_that_of_the_file(patched, change, state):
    assert NODE.commit({"commit": "v2.3.0", "patch": {**patched, **change}}) == f"v2.3.0, {state}"


def test_a_file_that_lost_its_patch_is_told(patched):
    swapped = {**patched, "before": patched["after"], "after": "1" * 64}
    assert NODE.commit({"commit": "v2.3.0", "patch": swapped}) == "v2.3.0, not patched"


def test_a_checkout_tells_its_own_commit(tmp_path):
    (tmp_path / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git/refs/heads/main").write_text("a" * 40 + "\n")
    assert NODE.commit({"commit": "text", "repository": str(tmp_path)}) == "a" * 40
    (tmp_path / ".git/HEAD").write_text("b" * 40 + "\n")
    assert NODE.commit({"commit": "text", "repository": str(tmp_path)}) == "b" * 40


# -- data and scripts ----------------------------------------------------------------------------------


def data_of(tmp_path, **question):
    return read({"data": [str(tmp_path / "data")], **question})["data"]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data/deep").mkdir(parents=True)
    (tmp_path / "data/deep/one").write_bytes(b"one")
    (tmp_path / "data/two").write_bytes(b"two")
    return tmp_path


def test_the_same_data_elsewhere_have_the_same_digest(data):
    before = data_of(data)
    (data / "data").rename(data / "moved")
    assert data_of(data, data=[str(data / "moved")]) == before


@pytest.mark.parametrize("fault", ["byte", "name", "file"])
def test_data_that_differ_have_another_digest(data, fault):
    before = data_of(data)
    if fault == "byte":
        (data / "data/two").write_bytes(b"twO")
    elif fault == "name":
        (data / "data/two").rename(data / "data/three")
    else:
        (data / "data/two").unlink()
    assert data_of(data) != before


def test_bytecode_is_no_part_of_a_script(data):
    before = read({"script": [str(data / "data")]})["script"]
    (data / "data/__pycache__").mkdir()
    (data / "data/__pycache__/two.pyc").write_bytes(b"cached")
    assert read({"script": [str(data / "data")]})["script"] == before


def test_data_that_stay_are_read_once(data, monkeypatch):
    question = {"cache": str(data / "cache")}
    before = data_of(data, **question)
    monkeypatch.setattr(NODE, "sha256_of", lambda path: pytest.fail(f"{path} was read again"))
    assert data_of(data, **question) == before


def test_a_change_under_the_old_time_is_seen(data):
    question = {"cache": str(data / "cache")}
    before = data_of(data, **question)
    status = (data / "data/two").stat()
    (data / "data/two").write_bytes(b"twO")
    os.utime(data / "data/two", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert data_of(data, **question) != before


def test_a_cache_that_is_cut_off_is_made_anew(data):
    before = data_of(data, cache=str(data / "cache"))
    (data / "cache").write_text('{"data /x": [[1')
    assert data_of(data, cache=str(data / "cache")) == before
    assert json.loads((data / "cache").read_text())


def field(number, body):
    assert len(body) < 128
    return bytes([number << 3 | 2, len(body)]) + body


def tfrecord(path, *examples):
    """Write a tfrecord file; an example is a list of (name, value) in the order in which they are written."""
    with path.open("wb") as stream:
        for example in examples:
            features = b"".join(
                field(1, field(1, name) + field(2, field(1, field(1, value)))) for name, value in example
            )
            body = field(1, features)
            stream.write(struct.pack("<Q", len(body)) + b"crc." + body + b"crc.")


def test_records_agree_whatever_the_order_of_their_features(tmp_path):
    one, other, third = (tmp_path / name for name in ("one", "other", "third"))
    a, b = (b"ids", b"123"), (b"mask", b"111")
    tfrecord(one, [a, b], [b, a])
    tfrecord(other, [b, a], [b, a])
    tfrecord(third, [a, b], [(b"ids", b"124"), b])
    digests = [NODE.sha256_of_records(str(path)) for path in (one, other, third)]
    assert digests[0] == digests[1] != digests[2]


def test_the_order_of_the_records_counts(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    first, second = [(b"ids", b"1")], [(b"ids", b"2")]
    tfrecord(one, first, second)
    tfrecord(other, second, first)
    assert NODE.sha256_of_records(str(one)) != NODE.sha256_of_records(str(other))


def test_the_module_returns_all_keys():
    result = call_module(stack_check_info, framework=["pytest"], python=sys.executable)
    assert set(result["stack"]) == set(stack_table.KEYS)
    assert result["stack"]["framework"] == f"pytest {pytest.__version__}"
    assert result["changed"] is False


def test_a_check_writes_no_cache(data):
    options = {"data": [str(data / "data")], "cache": str(data / "cache")}
    checked = call_module(stack_check_info, check=True, **options)
    assert not (data / "cache").exists()
    assert call_module(stack_check_info, **options)["stack"] == checked["stack"]
    assert (data / "cache").exists()


def test_a_cache_that_cannot_be_written_is_a_warning(data):
    # Where it runs here, the warning goes to the terminal.
    result = run_module("stack_check_info", data=[str(data / "data")], cache="/proc/nowhere/cache")
    assert "cannot write cache=/proc/nowhere/cache" in str(result["warnings"])
    assert "failed" not in result
