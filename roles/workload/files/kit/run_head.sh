# shellcheck shell=sh
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
#
# The head of every node script (templates/run.sh.j2). Source it first, with these variables set:
#   WORKLOAD          name of the workload
#   INSTALLED_DEVICE  the device that its software on this node is for: cpu or gpu
# It checks the device, removes what other programs left in the environment, and selects the network.
# DEVICE, NNODES, GPUS_PER_NODE and MASTER_ADDR come from job.env.

# Software for GPUs runs on a CPU too, but not the reverse.
if [ "$DEVICE" != cpu ] && [ "$DEVICE" != "$INSTALLED_DEVICE" ]; then
  echo "scalebook: refused: $WORKLOAD is installed for a $INSTALLED_DEVICE, the run needs a $DEVICE: run ansible-playbook provision.yml -e workload=$WORKLOAD -e ${WORKLOAD}_device=$DEVICE, which says what else that needs" >&2
  exit 2
fi

unset PYTHONHOME PYTHONPATH PYTHONSTARTUP
export PYTHONUNBUFFERED=1 PYTHONNOUSERSITE=1
# A rank that hangs prints its stack when run_node asks for it.
export PYTHONFAULTHANDLER="${PYTHONFAULTHANDLER:-1}"

case "$MASTER_ADDR" in
  127.*)
    # Simulated nodes of one machine: its host name may resolve to an address that does not answer.
    export GLOO_SOCKET_IFNAME=lo NCCL_SOCKET_IFNAME=lo
    ;;
esac

if [ "$DEVICE" = cpu ]; then
  export CUDA_VISIBLE_DEVICES=
elif [ "$((NNODES * GPUS_PER_NODE))" -gt 1 ]; then
  # The record says what NCCL joined the ranks by. Its lines of these subsystems come when it connects, before the window.
  export NCCL_DEBUG="${NCCL_DEBUG:-INFO}" NCCL_DEBUG_SUBSYS="${NCCL_DEBUG_SUBSYS:-INIT,NET,GRAPH}"
  # A rank of torch that hangs says in which collective, when run_node asks for it. Where no pipe can be made, torch would end.
  if [ -n "${JOB_DIR:-}" ] && [ -z "${TORCH_NCCL_DEBUG_INFO_PIPE_FILE:-}" ] && mkfifo "$JOB_DIR/flight.pipe" 2> /dev/null; then
    rm -f "$JOB_DIR/flight.pipe"
    export TORCH_FR_BUFFER_SIZE="${TORCH_FR_BUFFER_SIZE:-2000}" TORCH_NCCL_DEBUG_INFO_PIPE_FILE="$JOB_DIR/flight."
    export TORCH_FR_DUMP_TEMP_FILE="$JOB_DIR/flight." TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$JOB_DIR/flight."
  fi
fi
