/* Copyright: Contributors to the scalebook project
 * SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for NVIDIA's libnvidia-ml.so.1 with the answers that one H200 gave under a matrix product in bf16.
 *
 * FAKE_NVML in the environment says what goes wrong: `hang` at the third reading, `open` (nvmlInit hangs), `old`
 * (a GPU before Hopper: no GPM, no NVLink), `none` (no driver), `flood` (PCIe at 60 GiB/s), `slow` (the counters
 * of NVLink take 5 ms), `large` (nvmlInit takes 12 MB and gives back half of it in pieces), `mig` (GPU 0 is divided), `undivided` (MIG is on, but there is no slice).
 * Compiled with HANGS_WITH, the name of a file, it hangs while that is there; compiled with OLD_DRIVER it is the library of a driver of 2022, which has fewer functions.
 * The slices are made after NVIDIA's manual, not recorded: NVML tells the memory of a slice and GPM's activities
 * in it, and is not to be asked for the rest.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS, NOT_SUPPORTED = 3, NOT_FOUND = 6, DRIVER_NOT_LOADED = 9, ARGUMENT_VERSION_MISMATCH = 25 };

typedef struct { int gpu, place; } device; /* `place` is that of a slice, -1 for a whole GPU */
typedef struct { uint64_t taken; unsigned instance; } sample;
typedef struct { unsigned version; uint64_t total, reserved, free, used; } memory_v2;
typedef struct {
  unsigned field, scope;
  int64_t at, took;
  unsigned type, status;
  union { double d; unsigned ui; uint64_t ull; } value;
} field_value;
typedef struct { unsigned id, status; double value; char *words[3]; } metric;
typedef struct { unsigned version, count; sample *before, *now; metric metrics[210]; } question;

#define GPUS 8
#define PLACES 7
static device gpus[GPUS], slices[PLACES];
static const uint64_t RESERVED = 28214951936 - ((uint64_t)26293 << 20), USED = (uint64_t)26293 << 20;
static const unsigned POWER = 689000; /* mW */
static int readings;

/* The first and the third place have a slice. */
static const struct { unsigned instance; uint64_t used; double active; } SLICES[PLACES] = {
  [0] = {1, (uint64_t)5 << 30, 71.5}, [2] = {5, (uint64_t)2 << 30, 12.5}};

/* Readings of the counters of PCIe bytes, sent and received, a second apart, of an H200 on 23 November 2026
 * (torch_bert at batch 512): that of received bytes starts again. */
static const uint64_t PCIE[4][2] = {
  {256129624, 4285291504}, {269618632, 36419212}, {283020644, 81603872}, {296559316, 127673436}};

static int fault(const char *name) {
  const char *given = getenv("FAKE_NVML");
  return given && !strcmp(given, name);
}

static uint64_t microseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int whole(device *of) { return of->place < 0; }

static void need_whole(device *of) {
  if (!whole(of)) {
    fprintf(stderr, "a slice is asked for what is of the whole GPU\n");
    abort();
  }
}

const char *nvmlErrorString(int number) {
  switch (number) {
  case NOT_SUPPORTED: return "Not Supported";
  case NOT_FOUND: return "Not Found";
  case DRIVER_NOT_LOADED: return "Driver Not Loaded";
  }
  return "Unknown Error";
}

enum { PIECES = 768, PIECE = 1 << 14 };

static void take_memory(void) {
  static char *pieces[PIECES];
  for (int index = 0; index < PIECES; index++) pieces[index] = memset(malloc(PIECE), 1, PIECE);
  for (int index = 0; index < PIECES; index += 2) free(pieces[index]);
}

int nvmlInit_v2(void) {
  if (fault("large")) take_memory();
  for (int index = 0; index < GPUS; index++) gpus[index] = (device){index, -1};
  for (int index = 0; index < PLACES; index++) slices[index] = (device){0, index};
  if (fault("open")) sleep(3600);
  return fault("none") ? DRIVER_NOT_LOADED : SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  return nvmlInit_v2();
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device **found) {
  if (index >= GPUS) return NOT_FOUND;
  *found = &gpus[index];
  return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device **found) {
  if (strncmp(uuid, "MIG-made-", 9)) return NOT_FOUND;
  *found = &slices[atoi(uuid + 9)];
  return SUCCESS;
}

int nvmlDeviceGetMigMode(device *of, unsigned *now, unsigned *pending) {
  if (fault("old")) return NOT_SUPPORTED;
  *now = *pending = (fault("mig") || fault("undivided")) && of->gpu == 0;
  return SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(device *of, unsigned *count) {
  (void)of;
  *count = PLACES;
  return SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(device *of, unsigned index, device **found) {
  (void)of;
  /* The first place is free, so that it is looked for. */
  if (!fault("mig") || index == 0 || !SLICES[index - 1].instance) return NOT_FOUND;
  *found = &slices[index - 1];
  return SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device *of, device **found) {
  if (whole(of)) return NOT_FOUND;
  *found = &gpus[0];
  return SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(device *of, unsigned *number) {
  *number = SLICES[of->place].instance;
  return SUCCESS;
}

int nvmlDeviceGetName(device *of, char *name, unsigned size) {
  snprintf(name, size, "%s", whole(of) ? "NVIDIA H200" : "NVIDIA H200 MIG 3g.71gb");
  return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(device *of, uint64_t *found) {
  found[0] = whole(of) ? 150754820096 : (uint64_t)71 << 30;
  found[2] = whole(of) ? USED + RESERVED : SLICES[of->place].used;
  return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(device *of, memory_v2 *found) {
  if (fault("old")) return NOT_SUPPORTED;
  if (found->version != 0x02000028) return ARGUMENT_VERSION_MISMATCH;
  found->used = whole(of) ? USED : SLICES[of->place].used;
  return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(device *of, unsigned *found) {
  (void)of;
  *found = 700000;
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(device *of, unsigned *found) {
  need_whole(of);
  if (++readings == 3 && fault("hang")) sleep(3600);
#ifdef HANGS_WITH
  if (!access(HANGS_WITH, F_OK)) sleep(3600);
#endif
  found[0] = 100;
  return SUCCESS;
}

int nvmlDeviceGetPowerUsage(device *of, unsigned *found) {
  need_whole(of);
  *found = POWER;
  return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(device *of, uint64_t *found) {
  need_whole(of);
  /* Of a GPU that has been there for months: more than 32 bits. */
  *found = ((uint64_t)1 << 33) + microseconds(CLOCK_MONOTONIC) * (POWER / 1000) / 1000;
  return SUCCESS;
}

int nvmlDeviceGetClockInfo(device *of, int clock, unsigned *found) {
  need_whole(of);
  *found = clock == 1 ? 1980 : clock == 2 ? 3201 : 0;
  return SUCCESS;
}

int nvmlDeviceGetTemperature(device *of, int sensor, unsigned *found) {
  need_whole(of);
  *found = sensor == 0 ? 61 : 0;
  return SUCCESS;
}

/* The name before 2023 is the only one of an older driver. */
#ifdef OLD_DRIVER
#define EVENT_REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define EVENT_REASONS nvmlDeviceGetCurrentClocksEventReasons
#endif
int EVENT_REASONS(device *of, uint64_t *found) {
  need_whole(of);
  *found = 0x04;
  return SUCCESS;
}

int nvmlDeviceGetFieldValues(device *of, int count, field_value *fields) {
  static int read[GPUS];
  for (int index = 0; index < count; index++) {
    field_value *field = &fields[index];
    int received = field->field == 139 || field->field == 198;
    field->type = 3;
    if (field->field == 197 || field->field == 198) {
      int at = read[of->gpu] < 3 ? read[of->gpu] : 3;
      read[of->gpu] += received;
      field->value.ull = PCIE[at][received];
    } else if ((field->field == 138 || field->field == 139) && field->scope == 0xFFFFFFFF) {
      uint64_t end = microseconds(CLOCK_THREAD_CPUTIME_ID) + 2500;
      while (fault("slow") && microseconds(CLOCK_THREAD_CPUTIME_ID) < end) continue;
      field->status = fault("old") ? NOT_SUPPORTED : SUCCESS;
      field->value.ull = received ? 7 : 5;
    } else
      field->status = NOT_FOUND;
  }
  return SUCCESS;
}

#ifndef OLD_DRIVER
int nvmlGpmQueryDeviceSupport(device *of, unsigned *support) {
  (void)of;
  if (support[0] != 1) return ARGUMENT_VERSION_MISMATCH;
  support[1] = !fault("old");
  return SUCCESS;
}

int nvmlGpmSampleAlloc(sample **made) {
  *made = calloc(1, sizeof(sample));
  return SUCCESS;
}

int nvmlGpmSampleGet(device *of, sample *into) {
  need_whole(of);
  into->taken = microseconds(CLOCK_MONOTONIC);
  return SUCCESS;
}

int nvmlGpmMigSampleGet(device *of, unsigned instance, sample *into) {
  need_whole(of);
  *into = (sample){microseconds(CLOCK_MONOTONIC), instance};
  return SUCCESS;
}

int nvmlGpmMetricsGet(question *asked) {
  if (asked->version != 1 || asked->before->taken >= asked->now->taken) return ARGUMENT_VERSION_MISMATCH;
  if (asked->before->instance != asked->now->instance) return ARGUMENT_VERSION_MISMATCH;
  for (unsigned index = 0; index < asked->count; index++) {
    metric *of = &asked->metrics[index];
    of->status = SUCCESS;
    switch (of->id) {
    case 2: of->value = 96.1; break;
    case 3: of->value = 14.2; break;
    case 7: of->value = 93.3; break;
    case 10: of->value = 16.5; break;
    case 20: of->value = 8.1; break;
    case 21: of->value = fault("flood") ? 60000.0 : 68.7; break;
    default: of->status = NOT_FOUND;
    }
    for (int place = 0; of->id == 2 && place < PLACES; place++)
      if (asked->now->instance && SLICES[place].instance == asked->now->instance)
        of->value = SLICES[place].active;
  }
  return SUCCESS;
}
#endif
