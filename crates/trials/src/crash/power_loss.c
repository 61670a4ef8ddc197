/* Loaded into a server (LD_PRELOAD) whose disk loses, at a power loss, whatever was not flushed.
 *
 * Before each change of a file below TRIREME_POWER_LOSS_ROOT, what it changes goes into a journal, TRIREME_POWER_LOSS_DIR/journal;
 * a flush notes there that what came before it stays. After the servers were killed, `trireme crash` takes back all that no flush
 * covers (journal.rs). No real flush is made: the machine itself stays up. Creating, renaming and removing files count as durable at once, and
 * so do writes through mmap, stdio and the kernel's asynchronous calls, which are not seen here (the server is told not to use
 * the last).
 *
 * TRIREME_POWER_LOSS_DIR/lies, mapped: while its byte is not 0, flushes are not noted. TRIREME_POWER_LOSS_DIR/boot_id takes the place of the
 * kernel's file of that name.
 *
 * A record is six native integers of 64 bits and bytes: kind (1 change, 2 flush), inode, offset, length of the file before,
 * number of bytes written there, number of bytes that follow: those which were there before. Of a flush the third is
 * the length of the journal that it covers. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* All calls go to the kernel past our own functions. off_t has 64 bits on all machines that this runs on. */
#define KERNEL(name, ...) syscall(SYS_##name, __VA_ARGS__)

/* What a flush takes. */
#define FLUSH_US 1000

enum { CHANGE = 1, FLUSH = 2 };

struct record {
    uint64_t kind, inode, offset, length_before, written, bytes;
};

static int journal = -1;
static char root[4096], boot_id[4200];
static size_t root_length;
static dev_t root_device;
static volatile unsigned char truth;
static volatile unsigned char *lies = &truth;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *before;
static size_t before_capacity;

__attribute__((constructor)) static void begin(void) {
    const char *dir = getenv("TRIREME_POWER_LOSS_DIR"), *top = getenv("TRIREME_POWER_LOSS_ROOT");
    char path[4200];
    struct stat status;
    /* Only the server: the scripts of a state transfer have a disk that keeps everything. */
    if (!dir || !top || strcmp(program_invocation_short_name, "mariadbd") || stat(top, &status))
        return;
    root_device = status.st_dev;
    root_length = snprintf(root, sizeof root, "%s/", top);
    snprintf(boot_id, sizeof boot_id, "%s/boot_id", dir);
    snprintf(path, sizeof path, "%s/lies", dir);
    int fd = KERNEL(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        void *page = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED)
            lies = page;
        close(fd);
    }
    snprintf(path, sizeof path, "%s/journal", dir);
    journal = KERNEL(openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (journal < 0)
        abort();
}

static void note(const struct record *record, const void *bytes) {
    struct iovec parts[2] = {{(void *)record, sizeof *record}, {(void *)bytes, record->bytes}};
    ssize_t all = parts[0].iov_len + parts[1].iov_len;
    if (KERNEL(writev, journal, parts, record->bytes ? 2 : 1) != all)
        abort(); /* the disk with the journal is full */
}

/* Whether `fd` is a file that loses something; it then fills `status`. */
static int loses(int fd, struct stat *status) {
    char link[40], path[4096];
    if (journal < 0 || fd == journal || fstat(fd, status) || !S_ISREG(status->st_mode) || !status->st_nlink)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > (ssize_t)root_length && !memcmp(path, root, root_length);
}

/* Notes that `written` bytes from `offset` on are about to be changed, and what is there up to `until`. With the lock held. */
static void save(int fd, const struct stat *status, off_t offset, size_t written, off_t until) {
    struct record record = {CHANGE, status->st_ino, offset, status->st_size, written, 0};
    off_t end = until < status->st_size ? until : status->st_size;
    size_t wanted = end > offset ? end - offset : 0;
    if (wanted > before_capacity) {
        before = realloc(before, wanted);
        before_capacity = wanted;
        if (!before)
            abort();
    }
    if (wanted) {
        /* Opened anew: the descriptor may not be readable, or past the page cache. */
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int shadow = KERNEL(openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
        while (record.bytes < wanted) {
            ssize_t got = KERNEL(pread64, shadow, before + record.bytes, wanted - record.bytes, offset + record.bytes);
            if (got <= 0)
                abort();
            record.bytes += got;
        }
        KERNEL(close, shadow);
    }
    note(&record, before);
}

static void note_flush(uint64_t inode, uint64_t covered) {
    struct record record = {FLUSH, inode, covered, 0, 0, 0};
    note(&record, NULL);
}

static uint64_t journal_length(void) { return KERNEL(lseek, journal, 0, SEEK_END); }

/* Around a write: `offset` -1 is the current one. Returns whether to call `after`. */
static int before_write(int fd, struct stat *status, off_t offset, size_t count) {
    if (!loses(fd, status))
        return 0;
    pthread_mutex_lock(&lock);
    fstat(fd, status);
    if (KERNEL(fcntl, fd, F_GETFL) & O_APPEND)
        offset = status->st_size;
    else if (offset < 0)
        offset = KERNEL(lseek, fd, 0, SEEK_CUR);
    save(fd, status, offset, count, offset + count);
    return 1;
}

static ssize_t after(int saved, int fd, const struct stat *status, ssize_t result) {
    int error = errno;
    if (saved) {
        if ((KERNEL(fcntl, fd, F_GETFL) & O_DSYNC) && !*lies)
            note_flush(status->st_ino, journal_length());
        pthread_mutex_unlock(&lock);
    }
    errno = error;
    return result;
}

static size_t sum(const struct iovec *parts, int count) {
    size_t all = 0;
    for (int i = 0; i < count; i++)
        all += parts[i].iov_len;
    return all;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    struct stat status;
    int saved = before_write(fd, &status, -1, count);
    return after(saved, fd, &status, KERNEL(write, fd, bytes, count));
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    struct stat status;
    int saved = before_write(fd, &status, offset, count);
    return after(saved, fd, &status, KERNEL(pwrite64, fd, bytes, count, offset));
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t offset) {
    return pwrite(fd, bytes, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat status;
    int saved = before_write(fd, &status, -1, sum(parts, count));
    return after(saved, fd, &status, KERNEL(writev, fd, parts, count));
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    struct stat status;
    int saved = before_write(fd, &status, offset, sum(parts, count));
    /* The offset travels in two halves, of which a machine of 64 bits uses the first. */
    return after(saved, fd, &status, KERNEL(pwritev, fd, parts, count, offset, 0));
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) {
    return pwritev(fd, parts, count, offset);
}

int ftruncate(int fd, off_t length) {
    struct stat status;
    int saved = loses(fd, &status);
    if (saved) {
        pthread_mutex_lock(&lock);
        fstat(fd, &status);
        save(fd, &status, length, 0, status.st_size);
    }
    return after(saved, fd, &status, KERNEL(ftruncate, fd, length));
}
int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

int fallocate(int fd, int mode, off_t offset, off_t length) {
    struct stat status;
    int saved = loses(fd, &status);
    if (saved) {
        pthread_mutex_lock(&lock);
        fstat(fd, &status);
        /* Room only changes the length; punched holes change what is there. */
        save(fd, &status, offset, 0, mode & FALLOC_FL_PUNCH_HOLE ? offset + length : offset);
    }
    return after(saved, fd, &status, KERNEL(fallocate, fd, mode, offset, length));
}
int fallocate64(int fd, int mode, off_t offset, off_t length) { return fallocate(fd, mode, offset, length); }

int posix_fallocate(int fd, off_t offset, off_t length) {
    int error = errno;
    int result = fallocate(fd, 0, offset, length) ? errno : 0;
    errno = error;
    return result;
}
int posix_fallocate64(int fd, off_t offset, off_t length) { return posix_fallocate(fd, offset, length); }

/* Copies within the kernel: the callers fall back to reading and writing. */
ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t count, unsigned flags) {
    struct stat status;
    if (loses(out, &status)) {
        errno = ENOSYS;
        return -1;
    }
    return KERNEL(copy_file_range, in, in_at, out, out_at, count, flags);
}

/* What was written before the flush began is safe once it has returned. */
static int flush(int fd) {
    struct stat status;
    if (!loses(fd, &status))
        return 0;
    pthread_mutex_lock(&lock);
    uint64_t covered = journal_length();
    pthread_mutex_unlock(&lock);
    usleep(FLUSH_US);
    if (!*lies)
        note_flush(status.st_ino, covered);
    return 0;
}

int fsync(int fd) { return journal < 0 ? KERNEL(fsync, fd) : flush(fd); }
int fdatasync(int fd) { return journal < 0 ? KERNEL(fdatasync, fd) : flush(fd); }

/* The file of this name is no more: its inode may become another file's. */
static void forget(int dir, const char *path) {
    struct stat status;
    int error = errno;
    if (journal >= 0 && !fstatat(dir, path, &status, AT_SYMLINK_NOFOLLOW) && S_ISREG(status.st_mode) &&
        status.st_nlink == 1 && status.st_dev == root_device)
        note_flush(status.st_ino, journal_length());
    errno = error;
}

int unlinkat(int dir, const char *path, int flags) {
    forget(dir, path);
    return KERNEL(unlinkat, dir, path, flags);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int remove(const char *path) {
    if (!unlinkat(AT_FDCWD, path, 0))
        return 0;
    return errno == EISDIR ? unlinkat(AT_FDCWD, path, AT_REMOVEDIR) : -1;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    struct stat a, b;
    int same = !fstatat(from_dir, from, &a, AT_SYMLINK_NOFOLLOW) && !fstatat(to_dir, to, &b, AT_SYMLINK_NOFOLLOW) &&
               a.st_ino == b.st_ino;
    if (!same && !flags)
        forget(to_dir, to);
    return KERNEL(renameat2, from_dir, from, to_dir, to, flags);
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return renameat2(from_dir, from, to_dir, to, 0);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

static int open_at(int dir, const char *path, int flags, mode_t mode) {
    if (journal >= 0 && !strcmp(path, "/proc/sys/kernel/random/boot_id"))
        return KERNEL(openat, dir, boot_id, flags, mode);
    if (journal >= 0 && (flags & O_TRUNC)) {
        /* Opened as it is, and truncated by the function that notes it. */
        int fd = KERNEL(openat, dir, path, flags & ~O_TRUNC, mode);
        struct stat status;
        if (fd >= 0 && !fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size && ftruncate(fd, 0)) {
            int error = errno;
            KERNEL(close, fd);
            errno = error;
            return -1;
        }
        return fd;
    }
    return KERNEL(openat, dir, path, flags, mode);
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                                   \
        va_end(arguments);                                                                                             \
        return open_at(AT_FDCWD, path, flags, mode);                                                                   \
    }
#define OPENAT(name)                                                                                                   \
    int name(int dir, const char *path, int flags, ...) {                                                              \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                                   \
        va_end(arguments);                                                                                             \
        return open_at(dir, path, flags, mode);                                                                        \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }
