/* Loaded into a server (LD_PRELOAD): while the file named in TRIREME_CLOCK_OFF exists, its clock is ahead by the
   seconds that stand in it, or by an hour. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define AHEAD_S 3600

static time_t ahead(void) {
    const char *file = getenv("TRIREME_CLOCK_OFF");
    char text[24] = {0};
    int opened;
    if (!file || (opened = open(file, O_RDONLY | O_CLOEXEC)) < 0)
        return 0;
    ssize_t length = read(opened, text, sizeof text - 1);
    close(opened);
    return length > 0 ? atol(text) : AHEAD_S;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += ahead();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &precise))
        return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (place)
        *place = now.tv_sec;
    return now.tv_sec;
}
