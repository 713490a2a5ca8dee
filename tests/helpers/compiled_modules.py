# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Keep what Python compiles of Ansible's modules: on test hosts, and in the environment of the tests.

Ansible sends a module with all that it imports as a zip file of sources, and Python compiles some fifty of
them each time a module runs: a third of the module's time. The same sources compile to the same code, so it
is kept by their hash. A .pth file beside this one has `import compiled_modules; compiled_modules.keep()`.
"""

# Every Python starts with this file: it imports as little as it can, so no pathlib.

import importlib.util
import marshal
import os
import sys
import zipimport


def keep():
    """Let zipimport look for compiled code first. A user who cannot write to the folder only reads it."""
    home = sys.prefix if sys.prefix != sys.base_prefix else "/var/cache"
    folder = os.path.join(home, "compiled-modules-" + sys.implementation.cache_tag)
    compile_source = zipimport._compile_source

    def compile_once(pathname, source):
        path = os.path.join(folder, importlib.util.source_hash(source).hex())
        try:
            with open(path, "rb") as file:
                return marshal.load(file)
        except (OSError, EOFError, ValueError, TypeError):
            code = compile_source(pathname, source)
        try:
            os.makedirs(folder, exist_ok=True)
            new = "%s.%d" % (path, os.getpid())
            with open(new, "wb") as file:
                marshal.dump(code, file)
            os.replace(new, path)
        except OSError:
            pass
        return code

    zipimport._compile_source = compile_once
