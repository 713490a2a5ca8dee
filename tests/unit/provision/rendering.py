# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Evaluates single templates of roles as Ansible does, without a play."""

import jinja2.nativetypes
from ansible.module_utils.scalebook.provision import systems
from ansible.plugins.filter import core, mathstuff
from ansible.plugins.test import core as tests

OURS = {"scalebook_glibc": systems.glibc}


def rendered(template, variables):
    """Return a template as Ansible evaluates it."""
    environment = jinja2.nativetypes.NativeEnvironment(trim_blocks=True, undefined=jinja2.StrictUndefined)
    for filters in (core.FilterModule().filters(), mathstuff.FilterModule().filters(), OURS):
        environment.filters.update(filters)
    environment.tests.update(tests.TestModule().tests())
    return environment.from_string(template).render(variables)
