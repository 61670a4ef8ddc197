/* Loaded into one server (LD_PRELOAD) to give it a slow disk: every flush, and every write past the page cache, takes
 * longer by the microseconds that the file named in TRIREME_SLOW_DISK holds (4 bytes, changed while the server runs). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static volatile uint32_t none;
static volatile uint32_t *delay_us = &none;

__attribute__((constructor)) static void find_delay(void) {
    const char *path = getenv("TRIREME_SLOW_DISK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *page = mmap(NULL, 4, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED)
        delay_us = page;
}

static void wait_for_disk(void) {
    if (*delay_us)
        usleep(*delay_us);
}

static int is_direct(int fd) {
    return *delay_us && (fcntl(fd, F_GETFL) & O_DIRECT);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_for_disk();
    return real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk();
    return real(fd);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    if (is_direct(fd))
        wait_for_disk();
    return real(fd, bytes, count, offset);
}

/* off_t has 64 bits on all machines that this runs on. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
    return pwrite(fd, bytes, count, offset);
}
