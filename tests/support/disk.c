/* Preloaded into the server (LD_PRELOAD) by tests/support/disk.rs. Records what the server writes to the files of its
 * database and when it synchronizes them, and makes calls fail on request.
 *
 *   DISK_FILE   path of the database; its write-ahead log and its journal have names that begin with this path
 *   DISK_LOG    file for the records
 *   DISK_FAULT  while this file exists, calls fail: its content is the name of the call, "fsync" or "write"
 *
 * A record is four numbers of 64 bits (what, file, offset, length), followed by the data of a write. Files: 0 is the
 * database, 1 its write-ahead log, 2 its rollback journal. Synchronizing is recorded but not done, because replays use the
 * records. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WRITE = 1, TRUNCATE = 2, SYNC = 3 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The number of the file, or -1 if it is not one of the database. */
static int file_of(int fd) {
    static __thread char link[64], path[4096];
    const char *database = getenv("DISK_FILE");
    if (database == NULL) return -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (length < 0) return -1;
    path[length] = 0;
    size_t prefix = strlen(database);
    if (strncmp(path, database, prefix) != 0) return -1;
    const char *rest = path + prefix;
    if (*rest == 0) return 0;
    if (strcmp(rest, "-wal") == 0) return 1;
    return strcmp(rest, "-journal") == 0 ? 2 : -1;
}

static int fails(const char *call) {
    const char *path = getenv("DISK_FAULT");
    if (path == NULL) return 0;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    char name[16] = {0};
    syscall(SYS_read, fd, name, sizeof name - 1);
    syscall(SYS_close, fd);
    return strcmp(name, call) == 0;
}

static void record(uint64_t what, int file, uint64_t offset, uint64_t length, const void *data) {
    static int log = -1;
    if (log < 0) {
        const char *path = getenv("DISK_LOG");
        if (path == NULL) return;
        log = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    uint64_t header[4] = {what, (uint64_t)file, offset, length};
    syscall(SYS_write, log, header, sizeof header);
    if (data != NULL) syscall(SYS_write, log, data, length);
}

static ssize_t write_at(int fd, int file, const void *data, size_t length, uint64_t offset) {
    if (fails("write")) {
        errno = EIO;
        return -1;
    }
    pthread_mutex_lock(&mutex);
    ssize_t written = syscall(SYS_pwrite64, fd, data, length, offset);
    if (written > 0) record(WRITE, file, offset, (uint64_t)written, data);
    pthread_mutex_unlock(&mutex);
    return written;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    int file = file_of(fd);
    if (file < 0) return syscall(SYS_pwrite64, fd, data, length, offset);
    return write_at(fd, file, data, length, (uint64_t)offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

ssize_t write(int fd, const void *data, size_t length) {
    int file = file_of(fd);
    if (file < 0) return syscall(SYS_write, fd, data, length);
    off_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = write_at(fd, file, data, length, (uint64_t)offset);
    if (written > 0) lseek(fd, offset + written, SEEK_SET);
    return written;
}

int ftruncate64(int fd, off64_t length) {
    int file = file_of(fd);
    if (file < 0) return (int)syscall(SYS_ftruncate, fd, length);
    pthread_mutex_lock(&mutex);
    int result = (int)syscall(SYS_ftruncate, fd, length);
    if (result == 0) record(TRUNCATE, file, (uint64_t)length, 0, NULL);
    pthread_mutex_unlock(&mutex);
    return result;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int synchronize(int fd, long call) {
    int file = file_of(fd);
    if (file < 0) return (int)syscall(call, fd);
    if (fails("fsync")) {
        errno = EIO;
        return -1;
    }
    pthread_mutex_lock(&mutex);
    record(SYNC, file, 0, 0, NULL);
    pthread_mutex_unlock(&mutex);
    return 0;
}

int fsync(int fd) { return synchronize(fd, SYS_fsync); }

int fdatasync(int fd) { return synchronize(fd, SYS_fdatasync); }
