# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Keep which imports Ansible finds in the modules that it sends: in the environment of the tests.

Each ansible-playbook parses the sources of some fifty files for each module that it runs, only to see what
they import: a sixth of the processor time of a play on a few hosts. The same source has the same imports,
so they are kept by its hash. A .pth file beside this one has `import module_imports; module_imports.keep()`.
"""

# Every Python starts with this file: it imports as little as it can.

import sys

PARSER = "ansible.executor.module_common"


def keep():
    """Let Ansible parse the kept imports of a source, once it has imported its parser."""
    sys.meta_path.insert(0, _Finder)


class _Finder:
    """Find PARSER as Python does, and change it after it has been loaded."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != PARSER:
            return None
        import importlib.util

        sys.meta_path.remove(cls)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def load_and_change(module):
            load(module)
            parse = getattr(module, "_compile_module_ast", None)  # ansible-core 2.19 and later
            if parse:
                module._compile_module_ast = lambda name, source: parse(name, imports_of(source))

        spec.loader.exec_module = load_and_change
        return spec


def imports_of(source):
    """Return a source with nothing but the imports of `source`; one that cannot be parsed as it is."""
    import contextlib
    import importlib.util
    import os
    from pathlib import Path

    plain = source.encode() if isinstance(source, str) else bytes(source)
    folder = Path(sys.prefix, f"module-imports-{sys.implementation.cache_tag}")
    path = folder / importlib.util.source_hash(plain).hex()
    if path.exists():
        return path.read_text()
    try:
        text = _only_imports(plain)
    except SyntaxError:
        return source
    with contextlib.suppress(PermissionError):  # a test starts Ansible as another user
        folder.mkdir(exist_ok=True)
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(text)
        new.replace(path)
    return text


def _only_imports(source):
    """Return the imports of a source. Those below the top stay below it: they are optional to Ansible."""
    import ast

    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    top = [ast.unparse(node) for node in found if node in tree.body]
    below = ["    " + ast.unparse(node) for node in found if node not in tree.body]
    return "\n".join([*top, *(["if True:", *below] if below else [])]) + "\n"
