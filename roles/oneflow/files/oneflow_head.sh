# shellcheck shell=sh
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
#
# The head of the node scripts that start a trainer of Oneflow-Inc/models, one process per device. Source it after
# run_head.sh, with this variable set:
#   LIBRARIES  the directories of cuBLAS and cuDNN
# It makes an empty directory `scratch` of this process, which goes with it, and sets what OneFlow's own launcher sets.
# JOB_DIR, DEVICE, DTYPE, GPUS_PER_NODE, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come from job.env, the rank from mpirun.

# force=true plans it, and nothing in the log would tell that automatic mixed precision left everything in fp32.
if [ "$DEVICE $DTYPE" = "cpu fp16" ]; then
  echo "scalebook: refused: OneFlow's automatic mixed precision is for GPUs: use dtype=fp32" >&2
  exit 2
fi

rank=$OMPI_COMM_WORLD_RANK
# Each rank has a copy of the trainer of its own: it names its device in its text.
scratch="$JOB_DIR/scratch.$rank"
rm -rf "$scratch"
mkdir -p "$scratch" || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

local_rank=$((rank % GPUS_PER_NODE))
case "$MASTER_ADDR" in
  127.*)
    # OneFlow takes ranks of one address for ranks of one node: simulated nodes count theirs together.
    local_rank=$rank
    if [ "$DEVICE" != cpu ]; then
      CUDA_VISIBLE_DEVICES=$(seq -s , 0 $((WORLD_SIZE - 1)))
      export CUDA_VISIBLE_DEVICES
    fi
    ;;
esac
export RANK="$rank" LOCAL_RANK="$local_rank" WORLD_SIZE MASTER_ADDR MASTER_PORT
# The wheel has neither cuBLAS nor cuDNN and is not imported without them, on CPUs either. The node's own folders may have the driver.
export LD_LIBRARY_PATH="$LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
