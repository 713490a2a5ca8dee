# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for what a node runs of the launcher: like that of 2020 it does not look how ranks end."""

import argparse
import base64
import json
import os
import subprocess
import sys


def main():
    """Start the node's ranks and wait for one after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--node_rank", type=int)
    parser.add_argument("--master_addr")
    parser.add_argument("--master_port")
    parser.add_argument("--world_info")
    parser.add_argument("script")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    world = list(json.loads(base64.urlsafe_b64decode(args.world_info)).values())
    own = world[args.node_rank]
    before = sum(len(gpus) for gpus in world[: args.node_rank])
    env = dict(os.environ, MASTER_ADDR=args.master_addr, MASTER_PORT=args.master_port)
    env.update(WORLD_SIZE=str(sum(map(len, world))), CUDA_VISIBLE_DEVICES=",".join(map(str, own)))
    ranks = []
    for local in range(len(own)):
        env["RANK"] = str(before + local)
        command = [sys.executable, "-u", args.script, "--local_rank=%d" % local, *args.rest]
        ranks.append(subprocess.Popen(command, env=env))
    for rank in ranks:
        rank.wait()
