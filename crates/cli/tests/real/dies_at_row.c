/* Loaded into one server (LD_PRELOAD): while the file named in TRIREME_DIES exists, the process dies as it writes a row
 * with the mark below to InnoDB's redo log, as if applying that row had ended it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char mark[] = "the row that ends a server";

static int is_redo_log(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return strstr(path, "ib_logfile") != NULL;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    const char *armed = getenv("TRIREME_DIES");
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    if (armed && memmem(bytes, count, mark, sizeof mark - 1) && is_redo_log(fd) && access(armed, F_OK) == 0)
        kill(getpid(), SIGKILL);
    return real(fd, bytes, count, offset);
}

/* off_t has 64 bits on all machines that this runs on. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
    return pwrite(fd, bytes, count, offset);
}
