#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: stack_check_info
short_description: Read the software stack of a node
description:
  - Returns the twelve keys in which nodes that train together must agree, each a text. V(none) stands where a
    thing is not installed.
  - Everything is read from the node itself, never from a record of an installation, so that later changes
    show.
options:
  mpirun:
    description: Path of mpirun.
    type: str
    default: ""
  python:
    description: The workload's interpreter. Default is the one that runs this module.
    type: str
    default: ""
  framework:
    description: Names of the packages that are the workload's framework; those that are installed are
      reported.
    type: list
    elements: str
    default: []
  commit:
    description: Release or commit of the workload's sources, reported where O(repository) is not a checkout.
    type: str
    default: ""
  repository:
    description: A checkout of the workload's sources.
    type: str
    default: ""
  patch:
    description: A file that was patched, and its sha256 before and after, C({file, before, after}).
    type: dict
    default: {}
  script:
    description: Paths, patterns and directories of the programs that train.
    type: list
    elements: str
    default: []
  data:
    description: Paths, patterns and directories of the data.
    type: list
    elements: str
    default: []
  records:
    description: TFRecord files that every node makes for itself; their digest does not depend on the order of
      features.
    type: list
    elements: str
    default: []
  cache:
    description: File that keeps checksums of data for as long as the data do not change. Not written in check
      mode.
    type: str
    default: ""
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Read the software stack
  stack_check_info:
    mpirun: /opt/scalebook/openmpi/bin/mpirun
    python: /opt/scalebook/torch_bert/venv/bin/python
    framework: [torch]
    script: [/opt/scalebook/torch_bert/code]
    data: [/opt/scalebook/torch_bert/data/*/*.npy]
    cache: /opt/scalebook/stack_check_torch_bert.json
"""

RETURN = r"""
stack:
  description: The keys driver, cuda, cudnn, nccl, mpi, horovod, python, framework, kernel, commit, data and
    script.
  returned: success
  type: dict
  sample: {driver: "440.33.01", cuda: "10.2.89-1", mpi: "Open MPI 4.1.8", kernel: "5.15.0"}
"""

import ctypes
import functools
import glob
import hashlib
import json
import os
import platform
import re
import struct
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import sha256_of, write_json
from ansible.module_utils.scalebook.limited import run_limited

NONE = "none"

# Runs in the workload's interpreter. Python before 3.8 has pkg_resources only.
ASK = r"""
import json, platform
try:
    from importlib.metadata import distributions
    found = {d.metadata["Name"] or "": d.version for d in distributions()}
except ImportError:
    import pkg_resources
    found = {d.project_name: d.version for d in pkg_resources.working_set}
print(json.dumps({"version": platform.python_version(), "packages": found}, default=str))
"""

# Runs in the workload's interpreter. The answer is that of `horovodrun --check-build`, which imports the
# framework for each of its questions. All frameworks that a Horovod is built for have the same operations.
ASK_HOROVOD = r"""
import importlib, sys
reasons = []
for framework in ("tensorflow", "torch", "mxnet"):
    try:
        module = importlib.import_module("horovod." + framework)
    except Exception as error:
        reasons.append(framework + ": " + " ".join(str(error).split()))
        continue
    names = ("NCCL", "DDL", "CCL", "MPI", "Gloo")
    print("built with:", *(name for name in names if getattr(module, name.lower() + "_built", int)()))
    break
else:
    sys.exit(", ".join(reasons))
"""


HANGS = 124
"""The status of a command that hangs, as the program `timeout` has it."""


def run(*command: str, seconds: float = 20) -> Tuple[Optional[int], str, str]:
    """Return (status, stdout, stderr) of a command; status is HANGS or, where it cannot be started, None."""
    try:
        return run_limited(*command, seconds=seconds)
    except TimeoutError as error:
        return HANGS, "", str(error)
    except OSError as error:
        return None, "", str(error)


def first_line(*texts: str) -> str:
    """Return the first line of the first text that has one."""
    return next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "")


def read_text(path: str) -> str:
    """Return the text of a file, an empty one where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def joined(*values: Optional[str]) -> str:
    """Return the values that are not empty as one text, `none` where all are."""
    return ", ".join(value for value in values if value) or NONE


# -- the machine ---------------------------------------------------------------------------------------


def driver() -> str:
    """Return the version of NVIDIA's driver, with the complaint of nvidia-smi where it has one."""
    status, out, err = run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    if status in (0, 14):  # 14 warns of a damaged infoROM, behind the answer
        lines = {line.strip() for line in out.splitlines() if not line.startswith("WARNING: ")}
        return ", ".join(sorted(lines - {""})) or NONE
    module = first_line(read_text("/sys/module/nvidia/version"))
    if status is None:
        return module or NONE
    return "%s (nvidia-smi: %s)" % (module or NONE, first_line(out, err))


def distribution_packages() -> Dict[str, str]:
    """Return {name: version} of the installed packages of CUDA, cuDNN and NCCL."""
    form = "${Package} ${Version} ${db:Status-Status}\n"
    names = ["cuda-toolkit-*", "cuda-cudart-*", "libcudnn*", "libnccl2"]
    _, out, _ = run("dpkg-query", "--show", "--showformat", form, *names)
    lines = [line.split() for line in out.splitlines()]
    return {words[0]: words[1] for words in lines if len(words) == 3 and words[2] == "installed"}


def versions(packages: Dict[str, str], pattern: str) -> str:
    """Return the versions of the packages whose names match the pattern, as one text."""
    matching = {version for name, version in packages.items() if re.match(pattern + r"\Z", name)}
    return ", ".join(sorted(matching, reverse=True))


def toolkit_of_files() -> str:
    """Return the versions of the toolkits below /usr/local, those of NVIDIA's installer too."""
    numbers: Set[str] = set()
    for path in glob.glob("/usr/local/cuda*/version.txt"):
        numbers.update(re.findall(r"CUDA Version ([\d.]+)", read_text(path)))
    for path in glob.glob("/usr/local/cuda*/version.json"):
        numbers.update(re.findall(r'"cuda"\s*:\s*{[^}]*"version"\s*:\s*"([\d.]+)"', read_text(path)))
    return ", ".join(sorted(numbers, reverse=True))


def cudnn_of_files() -> str:
    """Return the version in cuDNN's header."""
    places = sorted(glob.glob("/usr/local/cuda*/include")) + ["/usr/include"]
    for path in [place + "/" + name for name in ("cudnn_version.h", "cudnn.h") for place in places]:
        numbers = dict(re.findall(r"#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d+)", read_text(path)))
        if len(numbers) == 3:
            return "%(MAJOR)s.%(MINOR)s.%(PATCHLEVEL)s" % numbers
    return ""


def nccl_of_loader() -> str:
    """Return the version of the NCCL that the loader finds."""
    number = ctypes.c_int()
    try:
        ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return ""
    # nccl.h: two digits for the minor version from 2.9 on.
    major = 10000 if number.value >= 10000 else 1000
    return "%d.%d.%d" % (number.value // major, number.value % major // 100, number.value % 100)


def mpi(mpirun: Optional[str]) -> str:
    """Return the name and version that mpirun prints."""
    if not (mpirun and os.path.exists(mpirun)):
        return NONE
    status, out, err = run(mpirun, "--version")
    match = re.search(r"\(Open MPI\) (\S+)", out)
    return "Open MPI " + match.group(1) if match else "status %s: %s" % (status, first_line(err, out))


# -- the framework -------------------------------------------------------------------------------------


def interpreter(python: Optional[str]) -> Tuple[str, Dict[str, str]]:
    """Return (version, {package: version}) of an interpreter; without one, (this one's version, {})."""
    if not python:
        return platform.python_version(), {}
    status, out, err = run(python, "-I", "-c", ASK, seconds=300)
    if status != 0:
        return "%s does not run: %s" % (python, first_line(*reversed(err.splitlines()))), {}
    answer = json.loads(out)
    packages = {name.lower().replace("_", "-"): version for name, version in answer["packages"].items()}
    return answer["version"], packages


def horovod(python: Optional[str], packages: Dict[str, str], cache: "Cache") -> str:
    """Return Horovod's version and the operations that it was built with.

    It imports a framework, which takes seconds: it asks again only when a library of Horovod has changed.
    """
    version = packages.get("horovod")
    if not version:
        return NONE
    assert python is not None  # it has given the packages
    place = os.path.dirname(os.path.dirname(python))
    libraries = sorted(glob.glob(place + "/lib/python*/site-packages/horovod/*/*.so"))

    def ask() -> str:
        status, out, err = run(python, "-I", "-c", ASK_HOROVOD, seconds=300)
        operations = out.partition("built with:")[2].split()
        why = first_line(*reversed(err.splitlines()))
        return "+".join(operations) or "no operations (status %s: %s)" % (status, why)

    state = [version] + [stamp(path) for path in libraries]
    return "%s %s" % (version, cache.get("horovod of " + place, state, ask))


def commit(question: Dict[str, Any]) -> str:
    """Return the commit or release of the sources, and whether they are patched."""
    head = first_line(read_text(os.path.join(question.get("repository") or "/nonexistent", ".git", "HEAD")))
    reference = os.path.join(question.get("repository") or "", ".git", head[5:])
    head_commit = first_line(read_text(reference)) if head.startswith("ref: ") else head
    patch = question.get("patch") or {}
    if not patch:
        return joined(head_commit or question.get("commit"))
    if not os.path.exists(patch["file"]):
        state = "patch missing"
    else:
        now = sha256_of(patch["file"])
        state = {patch["before"]: "not patched", patch["after"]: "patched"}.get(now, "patched and altered")
    return joined(head_commit or question.get("commit"), state)


# -- files ---------------------------------------------------------------------------------------------


def stamp(path: str) -> List[int]:
    """Return fields that change with a file, even where its modification time is set back."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def varint(data: bytes, offset: int) -> Tuple[int, int]:
    """Return (number, offset after it) of a protocol buffer's number."""
    number = shift = 0
    while True:
        number |= (data[offset] & 0x7F) << shift
        shift += 7
        offset += 1
        if data[offset - 1] < 0x80:
            return number, offset


def parts(message: bytes) -> List[bytes]:
    """Return the length-delimited fields of a message that has no others; raises ValueError for others."""
    contents, offset = [], 0
    while offset < len(message):
        key, offset = varint(message, offset)
        if key & 7 != 2:
            raise ValueError("a TFRecord holds a field that is not length-delimited")
        length, offset = varint(message, offset)
        contents.append(message[offset : offset + length])
        offset += length
    return contents


def sha256_of_records(path: str) -> str:
    """Return a digest of a tfrecord file of tf.train.Example that does not depend on the order of features.

    Protocol buffers do not fix the order of a map: two nodes that make the same data write different bytes.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for head in iter(lambda: stream.read(12), b""):
            body = stream.read(struct.unpack("<Q", head[:8])[0])
            stream.read(4)
            for features in parts(body):
                for feature in sorted(parts(features)):
                    digest.update(struct.pack("<Q", len(feature)) + feature)
            digest.update(b"\n")
    return digest.hexdigest()


class Cache:
    """Slow answers, kept in a file for as long as their subject does not change."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.used: Dict[str, Any] = {}
        try:
            self.known = json.loads(read_text(path)) if path else {}
        except ValueError:
            self.known = {}  # edited or truncated: everything is computed again

    def get(self, name: str, state: Any, ask: Callable[[], Any]) -> Any:
        """Return the known answer to `name` if `state` is unchanged, else that of ask()."""
        answer = self.known.get(name)
        if not (isinstance(answer, list) and len(answer) == 2 and answer[0] == state):
            answer = [state, ask()]
        self.used[name] = answer
        return answer[1]

    def write(self) -> str:
        """Write the answers that were used. Return why they cannot be written, or an empty text."""
        if not self.path or self.used == self.known:
            return ""
        try:
            write_json(self.path, self.used)
        except OSError as error:
            return "checksums of data are computed again next time: cannot write cache=%s: %s" % (
                self.path,
                error,
            )
        return ""


def files(places: Iterable[str]) -> List[Tuple[str, str]]:
    """Return sorted (name, path) of the files that paths, patterns and directories name, without bytecode."""
    named_paths = set()
    for path in [path for place in places for path in glob.glob(place)]:
        if os.path.isfile(path):
            named_paths.add((os.path.basename(path), path))
        for folder, below, names in os.walk(path):
            below[:] = [name for name in below if name not in ("__pycache__", ".git")]
            members = [os.path.join(folder, name) for name in names]
            named_paths.update(
                (os.path.relpath(member, path), member) for member in members if os.path.isfile(member)
            )
    return sorted(named_paths)


def digest_of(entries: Iterable[Tuple[str, int, str]]) -> str:
    """Return one digest over (name, size, sha256) of files, `none` where there are no files."""
    lines = ["%s %d %s\n" % entry for entry in sorted(entries)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if lines else NONE


def data(question: Dict[str, Any], cache: Cache) -> str:
    """Return one digest over all files of the data."""
    entries = []
    for how, sum_of in (("data", sha256_of), ("records", sha256_of_records)):
        for name, path in files(question.get(how) or []):
            digest = cache.get(how + " " + path, stamp(path), functools.partial(sum_of, path))
            entries.append((name, os.path.getsize(path), digest))
    return digest_of(entries)


def argument_spec() -> Dict[str, Any]:
    texts = {"type": "list", "elements": "str", "default": []}
    text = {"type": "str", "default": ""}
    return {
        "mpirun": text,
        "python": text,
        "framework": texts,
        "commit": text,
        "repository": text,
        "patch": {"type": "dict", "default": {}},
        "script": texts,
        "data": texts,
        "records": texts,
        "cache": text,
    }


def read(question: Dict[str, Any], cache: Cache) -> Dict[str, Any]:
    """Return the twelve keys of this node, each a text; of a framework's own library it is a message."""
    python, packages = interpreter(question.get("python"))
    system = distribution_packages()

    def either(pattern: str, elsewhere: Callable[[], str], package: str) -> Any:
        version, own = (versions(system, pattern) or elsewhere(), versions(packages, package + r"(-cu\d+)?"))
        if version and own:
            return {"code": "report.system-and-own", "values": {"version": version, "own": own}}
        return {"code": "report.own", "values": {"version": own}} if own else joined(version)

    scripts = files(question.get("script") or [])
    names = [name for name in question.get("framework") or [] if name in packages]
    return {
        "driver": driver(),
        "cuda": either(r"cuda-(toolkit|cudart)-\d+-\d+", toolkit_of_files, "nvidia-cuda-runtime"),
        "cudnn": either(r"libcudnn\d+(-cuda-\d+)?", cudnn_of_files, "nvidia-cudnn"),
        "nccl": either("libnccl2", nccl_of_loader, "nvidia-nccl"),
        "mpi": mpi(question.get("mpirun")),
        "horovod": horovod(question.get("python"), packages, cache),
        "python": python,
        "framework": joined(*["%s %s" % (name, packages[name]) for name in names]),
        "kernel": platform.release(),
        "commit": commit(question),
        "data": data(question, cache),
        "script": digest_of([(name, os.path.getsize(path), sha256_of(path)) for name, path in scripts]),
    }


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    cache = Cache(module.params["cache"])
    try:
        stack = read(module.params, cache)
    except (OSError, ValueError) as error:
        module.fail_json(msg="cannot read the software stack of this node: %s" % error)
    problem = "" if module.check_mode else cache.write()
    if problem:
        module.warn(problem)
    module.exit_json(changed=False, stack=stack)


if __name__ == "__main__":
    main()
