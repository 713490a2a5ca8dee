# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Read from a node itself what its stack is: the twelve keys in which nodes that train together must agree.

    python3 read_node.py '<JSON of the question>'       prints {"driver": "440.33.01", "cuda": "none", ...}

The question, all of it optional: ``mpirun`` (path), ``python`` (the framework's interpreter), ``framework``
(names of its package), ``commit`` (text) or ``repository`` (a checkout), ``patch`` ({file, before, after}:
sha256 of a file before and after it was patched), ``script`` and ``data`` (paths, patterns, directories),
``records`` (tfrecord files that every node makes for itself), ``cache`` (a file for checksums of data).

Nothing is taken from a record of what was once installed: what was changed since would not show. Standard
library only, Python 3.6 or newer.
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
import subprocess
import sys

NONE = "none"

# Asked of the framework's interpreter: pkg_resources is what Python before 3.8 has.
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


def run(*command):
    """Return (status, stdout, stderr) of a command; status is None where it cannot be started or hangs.

    horovodrun 0.19 leaves by os._exit: what it said would be lost in a buffer.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "universal_newlines": True}
    try:
        done = subprocess.run(command, env=dict(os.environ, PYTHONUNBUFFERED="1"), timeout=300, **pipes)
        return done.returncode, done.stdout, done.stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, "", str(error)


def first_line(*texts):
    """Return the first line of the first text that has one."""
    return next((line.strip() for text in texts for line in text.splitlines() if line.strip()), "")


def read_text(path):
    """Return the text of a file, or an empty one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""


def together(*values):
    """Return what several places said as one text, none where all are empty."""
    return ", ".join(value for value in values if value) or NONE


# -- the machine ---------------------------------------------------------------------------------------


def driver():
    """Return the version of NVIDIA's driver; what nvidia-smi complains about is part of it."""
    status, out, err = run("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    if status == 0:
        return ", ".join(sorted({line.strip() for line in out.splitlines() if line.strip()})) or NONE
    module = first_line(read_text("/sys/module/nvidia/version"))
    if status is None:
        return module or NONE
    return "%s (nvidia-smi: %s)" % (module or NONE, first_line(out, err))


def distribution_packages():
    """Return {name: version} of the installed packages among those whose versions count."""
    form = "${Package} ${Version} ${db:Status-Status}\n"
    names = ["cuda-toolkit-*", "cuda-cudart-*", "libcudnn*", "libnccl2"]
    _, out, _ = run("dpkg-query", "--show", "--showformat", form, *names)
    lines = [line.split() for line in out.splitlines()]
    return {words[0]: words[1] for words in lines if len(words) == 3 and words[2] == "installed"}


def versions(packages, pattern, note=""):
    """Return the versions of the packages whose names fit the pattern, as one text."""
    found = {version for name, version in packages.items() if re.match(pattern + r"\Z", name)}
    return ", ".join(version + note for version in sorted(found, reverse=True))


def toolkit_of_files():
    """Return the versions that toolkits below /usr/local tell, those of NVIDIA's installer too."""
    found = set()
    for path in glob.glob("/usr/local/cuda*/version.txt"):
        found.update(re.findall(r"CUDA Version ([\d.]+)", read_text(path)))
    for path in glob.glob("/usr/local/cuda*/version.json"):
        found.update(re.findall(r'"cuda"\s*:\s*{[^}]*"version"\s*:\s*"([\d.]+)"', read_text(path)))
    return ", ".join(sorted(found, reverse=True))


def cudnn_of_files():
    """Return the version that cuDNN's header tells."""
    places = sorted(glob.glob("/usr/local/cuda*/include")) + ["/usr/include"]
    for path in [place + "/" + name for name in ("cudnn_version.h", "cudnn.h") for place in places]:
        found = dict(re.findall(r"#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) (\d+)", read_text(path)))
        if len(found) == 3:
            return "%(MAJOR)s.%(MINOR)s.%(PATCHLEVEL)s" % found
    return ""


def nccl_of_loader():
    """Return the version of the NCCL that the loader finds."""
    number = ctypes.c_int()
    try:
        ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError):
        return ""
    # nccl.h: two digits for the minor version from 2.9 on.
    major = 10000 if number.value >= 10000 else 1000
    return "%d.%d.%d" % (number.value // major, number.value % major // 100, number.value % 100)


def mpi(mpirun):
    """Return what mpirun says it is."""
    if not (mpirun and os.path.exists(mpirun)):
        return NONE
    status, out, err = run(mpirun, "--version")
    match = re.search(r"\(Open MPI\) (\S+)", out)
    return "Open MPI " + match.group(1) if match else "status %s: %s" % (status, first_line(err, out))


# -- the framework -------------------------------------------------------------------------------------


def interpreter(python):
    """Return (version, {package: version}) of an interpreter; without one, (this one's version, {})."""
    if not python:
        return platform.python_version(), {}
    status, out, err = run(python, "-I", "-c", ASK)
    if status != 0:
        return "%s does not run: %s" % (python, first_line(*reversed(err.splitlines()))), {}
    said = json.loads(out)
    packages = {name.lower().replace("_", "-"): version for name, version in said["packages"].items()}
    return said["version"], packages


def horovod(python, packages, cache):
    """Return Horovod's version and the operations that it was built with.

    `horovodrun --check-build` takes seconds: it is asked again when a library of Horovod's has changed.
    """
    version = packages.get("horovod")
    if not version:
        return NONE
    place = os.path.dirname(os.path.dirname(python))
    libraries = sorted(glob.glob(place + "/lib/python*/site-packages/horovod/*/*.so"))

    def ask():
        status, out, err = run(os.path.join(os.path.dirname(python), "horovodrun"), "--check-build")
        operations = out.partition("Available Tensor Operations:")[2]
        found = re.findall(r"\[X\] (\S+)", operations)
        return "+".join(found) or "no operations (status %s: %s)" % (status, first_line(err, out))

    state = [version] + [stamp(path) for path in libraries]
    return "%s %s" % (version, cache.get("horovod of " + place, state, ask))


def commit(question):
    """Return which commit or release the scripts are, and whether they are patched."""
    head = first_line(read_text(os.path.join(question.get("repository") or "/nonexistent", ".git", "HEAD")))
    reference = os.path.join(question.get("repository") or "", ".git", head[5:])
    found = first_line(read_text(reference)) if head.startswith("ref: ") else head
    patch = question.get("patch") or {}
    if not patch:
        return together(found or question.get("commit"))
    if not os.path.exists(patch["file"]):
        state = "patch missing"
    else:
        now = sha256(patch["file"])
        state = {patch["before"]: "not patched", patch["after"]: "patched"}.get(now, "patched and altered")
    return together(found or question.get("commit"), state)


# -- files ---------------------------------------------------------------------------------------------


def stamp(path):
    """Return what changes with a file, even where its time is set back."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def sha256(path):
    """Return the hex digest of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def varint(data, at):
    """Return (number, offset after it) of a protocol buffer's number."""
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return number, at


def parts(message):
    """Return the length-delimited fields of a message that has no others; raises ValueError for others."""
    found, at = [], 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 != 2:
            raise ValueError("a field of another kind")
        length, at = varint(message, at)
        found.append(message[at : at + length])
        at += length
    return found


def sha256_of_records(path):
    """Return a digest of a tfrecord file of tf.train.Example that does not depend on the order of features.

    Protocol buffers promise no order of a map: two nodes that make the same data write other bytes.
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
    """Answers that cost time, kept in a file for as long as what they are about stays as it is."""

    def __init__(self, path):
        self.path = path
        self.used = {}
        try:
            self.known = json.loads(read_text(path)) if path else {}
        except ValueError:
            self.known = {}  # written by hand or cut off: all is asked again

    def get(self, name, state, ask):
        """Return the known answer to `name` if `state` is the same still, else that of ask()."""
        known = self.known.get(name)
        if not (isinstance(known, list) and len(known) == 2 and known[0] == state):
            known = [state, ask()]
        self.used[name] = known
        return known[1]

    def write(self):
        """Keep what was used, whole or not at all. Without the right to, all is asked again next time."""
        if not self.path or self.used == self.known:
            return
        new = "%s.%d" % (self.path, os.getpid())
        try:
            with open(new, "w", encoding="utf-8") as stream:
                json.dump(self.used, stream, indent=0, sort_keys=True)
            os.replace(new, self.path)
        except OSError as error:
            print("%s: %s" % (self.path, error), file=sys.stderr)


def files(places):
    """Return sorted (name, path) of the files that paths, patterns and directories name; bytecode is none."""
    found = set()
    for path in [path for place in places for path in glob.glob(place)]:
        if os.path.isfile(path):
            found.add((os.path.basename(path), path))
        for folder, below, names in os.walk(path):
            below[:] = [name for name in below if name not in ("__pycache__", ".git")]
            members = [os.path.join(folder, name) for name in names]
            found.update(
                (os.path.relpath(member, path), member) for member in members if os.path.isfile(member)
            )
    return sorted(found)


def digest_of(entries):
    """Return one digest over (name, size, sha256) of files, none where there are no files."""
    lines = ["%s %d %s\n" % entry for entry in sorted(entries)]
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest() if lines else NONE


def data(question, cache):
    """Return one digest over all files of the data."""
    entries = []
    for how, sum_of in (("data", sha256), ("records", sha256_of_records)):
        for name, path in files(question.get(how) or []):
            digest = cache.get(how + " " + path, stamp(path), functools.partial(sum_of, path))
            entries.append((name, os.path.getsize(path), digest))
    return digest_of(entries)


def read(question):
    """Return the twelve keys of this node, each a text."""
    cache = Cache(question.get("cache") or "")
    python, packages = interpreter(question.get("python"))
    system = distribution_packages()
    own = " of the framework's own"

    def either(pattern, elsewhere, package):
        return together(
            versions(system, pattern) or elsewhere(), versions(packages, package + r"(-cu\d+)?", own)
        )

    scripts = files(question.get("script") or [])
    names = [name for name in question.get("framework") or [] if name in packages]
    row = {
        "driver": driver(),
        "cuda": either(r"cuda-(toolkit|cudart)-\d+-\d+", toolkit_of_files, "nvidia-cuda-runtime"),
        "cudnn": either(r"libcudnn\d+(-cuda-\d+)?", cudnn_of_files, "nvidia-cudnn"),
        "nccl": either("libnccl2", nccl_of_loader, "nvidia-nccl"),
        "mpi": mpi(question.get("mpirun")),
        "horovod": horovod(question.get("python"), packages, cache),
        "python": python,
        "framework": together(*["%s %s" % (name, packages[name]) for name in names]),
        "kernel": platform.release(),
        "commit": commit(question),
        "data": data(question, cache),
        "script": digest_of([(name, os.path.getsize(path), sha256(path)) for name, path in scripts]),
    }
    cache.write()
    return row


def main():
    """Read the question from the first argument, print the answer."""
    try:
        print(json.dumps(read(json.loads(sys.argv[1]))))
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
