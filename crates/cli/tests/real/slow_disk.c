/* Loaded into a server (LD_PRELOAD): while the file named in TRIREME_SLOW_DISK exists, no flush of the write-set log ends. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_the_disk(int fd) {
    const char *file = getenv("TRIREME_SLOW_DISK");
    char link[64], path[4096];
    ssize_t length;
    if (!file)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = 0;
    if (!strstr(path, "/trireme-0"))
        return;
    while (!access(file, F_OK))
        usleep(50 * 1000);
}

int fdatasync(int fd) {
    wait_for_the_disk(fd);
    return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd) {
    wait_for_the_disk(fd);
    return (int)syscall(SYS_fsync, fd);
}
