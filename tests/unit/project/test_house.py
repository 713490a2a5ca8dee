# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Rules of the house that hold for every file: what is searched for here must not be found."""

import ast
import functools
import importlib.util
import re
from pathlib import Path

import pytest
from project_files import ROOT, project_files

# The patterns below would match themselves; recordings and locks are not our text.
LOCKS = ["requirements", "requirements-dev", "requirements-legacy"]
NOT_OURS = ("tests/data/", "LICENSE", *(f"{lock}.txt" for lock in LOCKS), Path(__file__).name)

FILES = project_files()


@functools.cache
def our_texts():
    """Return (file, text) of every text file of ours."""
    texts = []
    for name in FILES:
        if not name.startswith(NOT_OURS) and not name.endswith(NOT_OURS[-1]):
            content = (ROOT / name).read_bytes()
            if b"\0" not in content:
                texts.append((name, content.decode()))
    return texts


def lines_of(*endings):
    """Yield (place, line, lines before and after) of the files of ours with one of the endings."""
    for name, text in our_texts():
        if name.endswith(endings or ("",)):
            lines = text.splitlines()
            for index, line in enumerate(lines):
                yield f"{name}:{index + 1}", line, lines[max(0, index - 2) : index + 2]


def found(pattern, *endings, flags=re.IGNORECASE):
    """Return the lines of our files that the pattern matches, with their places."""
    search = re.compile(pattern, flags).search
    # A file without a match as a whole, which is fast, has no line with one.
    in_text = re.compile(pattern, flags | re.MULTILINE).search
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in our_texts()
        if name.endswith(endings or ("",)) and in_text(text)
        for number, line in enumerate(text.splitlines(), start=1)
        if search(line)
    ]


# What would take a host for the right one unseen, each with lines that do.
WEAK_HOST_KEYS = {
    r"StrictHostKeyChecking[\s=:'\"]+(no|off|accept-new)\b": [
        "ssh -o StrictHostKeyChecking=no NODE1",
        "  StrictHostKeyChecking accept-new",
        "options = {'StrictHostKeyChecking': 'off'}",
    ],
    r"UserKnownHostsFile[\s=:'\"]+(/dev/null|none)\b": ["ansible_ssh_args: -o UserKnownHostsFile=/dev/null"],
    r"host_key_checking[\s=:'\"]+(false|no|off|0)\b": [
        "host_key_checking = False",
        "ANSIBLE_HOST_KEY_CHECKING=False ansible-playbook provision.yml",
        "ANSIBLE_HOST_KEY_CHECKING: '0'",
    ],
    r"(ssh|paramiko)_host_key_(auto_add|checking)[\s=:'\"]+(true|false|no)\b": [
        "ansible_ssh_host_key_checking: no"
    ],
    r"ssh-keyscan\b.*(>|\btee\b)": [
        "ssh-keyscan NODE1 >> ~/.ssh/known_hosts",
        "key: \"{{ lookup('pipe', 'ssh-keyscan ' ~ host ~ ' | tee known_hosts') }}\"",
    ],
    r"(AutoAddPolicy|WarningPolicy)\b": ["client.set_missing_host_key_policy(paramiko.AutoAddPolicy())"],
    r"VerifyHostKeyDNS[\s=:'\"]+yes\b": ["VerifyHostKeyDNS yes"],
}
# What would install what nobody signed, or from nobody knows whom.
UNSIGNED = {
    r"(\b|\\n)trusted[=:]\s*yes": [
        "deb [trusted=yes] http://mirror/ubuntu bionic main",
        "Trusted: yes",
        r"Suites: ./\nTrusted: yes",
    ],
    r"--?allow-(unauthenticated|insecure|weak)": ["apt-get install --allow-unauthenticated libnccl2"],
    r"Allow(Unauthenticated|Insecure\w*|Weak\w*)[\s=:'\"]+(true|yes|1)\b": [
        'APT::Get::AllowUnauthenticated "true";',
        "-oAcquire::AllowInsecureRepositories=1",
    ],
    r"allow_unauthenticated[\s=:]+(true|yes)": ["    allow_unauthenticated: true"],
    r"(^|[^\w.])(ansible\.builtin\.)?apt_key\s*:|\bapt-key\s+(add|adv)": [
        "  ansible.builtin.apt_key:",
        "wget -qO- https://example.org/key | apt-key add -",
        "apt-key adv --fetch-keys 7fa2af80.pub",
    ],
    r"disable_gpg_check[\s=:]+(true|yes)": ["disable_gpg_check: yes"],
    r"validate_certs[\s=:]+(false|no)\b": ["    validate_certs: false"],
    r"(curl|wget)\b.*(\s-k\b|--insecure|--no-check-certificate)": ["curl -k https://example.org"],
    r"--trusted-host|trusted-host\s*=|PIP_TRUSTED_HOST=": ["pip install --trusted-host mirror torch"],
    r"http\.sslVerify[\s=]+false|GIT_SSL_NO_VERIFY": [
        "git -c http.sslVerify=false clone",
        "GIT_SSL_NO_VERIFY=1",
    ],
    r"verify\s*=\s*False|_create_unverified_context|CERT_NONE": ["requests.get(url, verify=False)"],
}


def planted(patterns):
    return [(pattern, line) for pattern, lines in patterns.items() for line in lines]


@pytest.mark.parametrize("pattern", WEAK_HOST_KEYS)
def test_no_file_weakens_host_key_checking(pattern):
    assert found(pattern) == []


@pytest.mark.parametrize("pattern", UNSIGNED)
def test_no_file_takes_what_nobody_signed(pattern):
    assert found(pattern) == []


@pytest.mark.parametrize(("pattern", "line"), planted(WEAK_HOST_KEYS) + planted(UNSIGNED))
def test_a_planted_line_would_be_found(pattern, line, monkeypatch):
    monkeypatch.setattr(f"{__name__}.our_texts", lambda: [("roles/node/tasks/planted.yml", f"---\n{line}\n")])
    assert found(pattern) == [f"roles/node/tasks/planted.yml:2: {line.strip()}"]


def test_what_is_fetched_from_outside_is_a_variable():
    """Whoever has a mirror, or no outside at all, changes defaults or a stack file, never a task."""
    fixed = [
        f"{place}: {line.strip()}"
        for place, line, _ in lines_of(".yml", ".j2", ".sh")
        if re.match(r"(roles/\w+/(tasks|templates|files|vars)|playbooks/(?!vars/stack_))", place)
        and re.search(r"^(?!\s*#).*\b(https?|ftp|git|ssh)://\w", line)
    ]
    assert fixed == []


def test_no_message_names_an_argument_that_no_user_gives():
    assert found("[\"']" + r"path=\{", ".py") == []


def test_no_task_ignores_errors():
    assert found(r"ignore_errors\s*:", ".yml", ".yaml", ".j2") == []


@pytest.mark.parametrize(
    "pattern",
    [r"failed_when:\s*false", r"^\s*except[^:]*:\s*pass$", r"contextlib\.suppress", r"\|\|\s*true\b"],
)
def test_a_swallowed_error_has_its_reason_beside_it(pattern):
    search = re.compile(pattern).search
    bare = [
        f"{place}: {line.strip()}"
        for place, line, around in lines_of(".py", ".yml", ".yaml", ".sh", ".j2")
        if search(line) and not place.startswith("tests/") and not any("#" in near for near in around)
    ]
    assert bare == []


def test_nothing_is_left_for_later():
    assert found(r"\b(TODO|FIXME|XXX)\b", flags=0) == []


def test_no_file_names_a_place_of_the_machine_it_was_written_on():
    here = "|".join(re.escape(f"{place}/") for place in (ROOT, Path.home()))
    assert found(rf"(?<![\w.}}])({here}|/root/|/home/(?!USER\b|you\b)\w+/)") == []


def test_no_file_is_larger_than_a_megabyte():
    assert [name for name in FILES if (ROOT / name).stat().st_size > 1_000_000] == []


def test_every_shell_script_stops_at_an_unset_variable():
    scripts = [name for name in FILES if re.match(r"(?!tests/).*\.sh(\.j2)?$|scripts/|\.ci/", name)]
    careless = [
        name
        for name in scripts
        if re.match(r"#!(?!.*python)", text := (ROOT / name).read_text())
        and not re.search(r"^set -e?u", text, re.M)
    ]
    assert careless == []


PYTHON = [name for name in FILES if re.match(r"(?!tests/).*(?<!__init__)\.py$", name)]
SHARED = r"__init__|files|launch/lock_file|node/\w+|root_only"
NODE_CODE = rf"roles/\w+/(files|library)/|module_utils/scalebook/({SHARED})\.py$"
ON_NODES = [name for name in FILES if re.match(NODE_CODE, name) and name.endswith(".py")]


@pytest.mark.parametrize("name", PYTHON)
def test_python_names_its_licence(name):
    text = (ROOT / name).read_text()
    assert (
        "# Copyright: Contributors to the scalebook project\n# SPDX-License-Identifier: Apache-2.0\n" in text
    )


@pytest.mark.parametrize("name", PYTHON)
def test_python_runs_no_text_as_code(name):
    called = {
        ast.unparse(node.func)
        for node in ast.walk(ast.parse((ROOT / name).read_text()))
        if isinstance(node, ast.Call)
    }
    assert called.isdisjoint({"eval", "exec", "os.system", "pickle.load", "pickle.loads", "yaml.load"})


@pytest.mark.parametrize("name", ON_NODES)
def test_python_of_the_nodes_keeps_to_3_6(name):
    tree = ast.parse((ROOT / name).read_text(), feature_version=(3, 6))
    future = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    assert future == []


@pytest.mark.parametrize("name", LOCKS)
def test_every_requirement_is_pinned_and_hashed(name):
    text = (ROOT / f"{name}.txt").read_text().replace("\\\n", " ")
    pins = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    loose = [
        pin for pin in pins if not re.match(r"[A-Za-z0-9._\[\],-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", pin)
    ]
    assert pins and loose == []


@pytest.mark.parametrize("name", LOCKS)
def test_the_lock_holds_what_was_asked_for(name):
    asked = [
        line.partition("=")[0].strip().lower().replace("_", "-")
        for line in (ROOT / f"{name}.in").read_text().splitlines()
        if re.match(r"[A-Za-z]", line)
    ]
    locked = {
        match.group().lower().replace("_", "-")
        for match in re.finditer(r"^[A-Za-z0-9._-]+(?===)", (ROOT / f"{name}.txt").read_text(), re.M)
    }
    assert [package for package in asked if package not in locked] == []


def test_both_locks_hold_the_same_versions():
    runtime, development = (
        set(re.findall(r"^[A-Za-z0-9._-]+==\S+", (ROOT / name).read_text(), re.M))
        for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert runtime <= development


BENCHES = [name for name in FILES if name.startswith("tests/bench/")]


@pytest.mark.parametrize("name", BENCHES)
def test_what_a_measuring_script_imports_of_the_project_exists(name):
    """No other test runs these scripts."""
    package = "ansible.module_utils.scalebook"
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
            module = importlib.import_module(node.module)
            for each in node.names:
                assert hasattr(module, each.name) or importlib.util.find_spec(f"{node.module}.{each.name}")
