#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Reads how busy a node is while a job runs, one process per node, started and ended by run_node.

usage: sampler.py --out FILE --interval SECONDS [--gpus 0,1] [--directory DIR ...]

FILE begins with a line `# {...}` that describes it, then comes a CSV table: a line for each reading, with
its time on the node's monotonic clock. Counters are written as they are, so the difference of two
readings is exact however many lie between. Standard input brings the words `first` and `last`, when the
window's first and last step were logged: each is answered by a full reading at once, marked with that word.
The other readings follow at the interval; what takes long is put off in some of them, and has `-` there.

It ends when standard input does, which is also what happens when run_node is killed. Then it appends why
sources are missing, and prints one JSON line on what it used itself. It never writes to a disk that is
nearly full.

The program is short, because Python compiles it at each start, which takes memory.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

import sampling

if __name__ == "__main__":
    sampling.main()
