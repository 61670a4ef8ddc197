/* Loaded into a server (LD_PRELOAD): while the file named in TRIREME_SLOW_RECOVERY exists, `mariadbd --wsrep-recover` does not begin. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void wait_before_recovery(void) {
    const char *file = getenv("TRIREME_SLOW_RECOVERY");
    char arguments[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = fd < 0 ? 0 : read(fd, arguments, sizeof arguments);
    close(fd);
    if (!file || length <= 0 || !memmem(arguments, (size_t)length, "--wsrep-recover", 15))
        return;
    while (!access(file, F_OK))
        usleep(50 * 1000);
}
