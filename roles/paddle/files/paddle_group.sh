# shellcheck shell=sh
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
#
# Gives a process of Paddle, which mpirun started, its place among the others. Source it after run_head.sh, with LIBRARIES set to
# the directories of CUDA's libraries. The rest comes from job.env and mpirun.

# Paddle would follow variables that its own launcher set elsewhere.
for name in $(env | sed -n 's/^\(\(PADDLE\|FLAGS\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
  unset "$name"
done
rank=$OMPI_COMM_WORLD_RANK
export PADDLE_TRAINER_ID="$rank" PADDLE_TRAINERS_NUM="$WORLD_SIZE"
# The first rank listens at PADDLE_MASTER. The endpoints are names only, but in Paddle 1.8, whose ranks listen at them: each rank needs
# one of its own.
export PADDLE_MASTER="$MASTER_ADDR:$MASTER_PORT"
endpoints=
index=0
for host in $(echo "$HOSTS" | tr , ' '); do
  place=0
  while [ "$place" -lt "$GPUS_PER_NODE" ]; do
    endpoint="$host:$((MASTER_PORT + 1 + index))"
    endpoints="$endpoints${endpoints:+,}$endpoint"
    [ "$index" -ne "$rank" ] || PADDLE_CURRENT_ENDPOINT=$endpoint
    index=$((index + 1))
    place=$((place + 1))
  done
done
export PADDLE_TRAINER_ENDPOINTS="$endpoints" PADDLE_CURRENT_ENDPOINT
if [ "$DEVICE" = gpu ]; then
  # CUDA_VISIBLE_DEVICES has the GPUs of this node; Paddle counts within them.
  export FLAGS_selected_gpus=$((rank % GPUS_PER_NODE)) PADDLE_DISTRI_BACKEND=nccl
  # The node's own folders may have the driver.
  export LD_LIBRARY_PATH="$LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
else
  export PADDLE_DISTRI_BACKEND=gloo
fi
