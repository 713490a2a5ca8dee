# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What provisioning decides about a host: interpreters, fingerprints, the stack table."""
