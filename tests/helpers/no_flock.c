/* Copyright: Contributors to the scalebook project
 * SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded (LD_PRELOAD), it lets flock fail for files below the directory PLACE as on a file system that has none: NFS
 * without its lock service, Lustre without `-o flock`. The file ASKED says that it did.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int flock(int file, int operation) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length > 0) {
    path[length] = 0;
    if (!strncmp(path, PLACE "/", sizeof PLACE)) {
      int asked = open(ASKED, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
      if (asked >= 0) close(asked);
      errno = ENOLCK;
      return -1;
    }
  }
  return (int)syscall(SYS_flock, file, operation);
}
