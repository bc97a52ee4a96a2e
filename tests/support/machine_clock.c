// Adds the seconds in the file CLOCK_FILE to the time of the machine's clock, in a program that loads this library first.
// libfaketime does the same, but crashes with mimalloc. The other clocks, which timers use, are unchanged.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    const char *path = getenv("CLOCK_FILE");
    int file = failed || clock != CLOCK_REALTIME || !path ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        char seconds[32] = {0};
        if (read(file, seconds, sizeof seconds - 1) > 0) time->tv_sec += atol(seconds);
        close(file);
    }
    return failed;
}
