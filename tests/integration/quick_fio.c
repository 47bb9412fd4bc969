/* Copyright: (c) 2026, The ssdlab.fleet authors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Loaded into fio before the C library (quick_fio.py says why). fio first reads its clock until it has counted the
 * CPU's ticks in fifty pieces of 1.28 ms, which nobody needs whose clock is clock_gettime; then it measures ten sleeps
 * of 1 us. Without headers, so that any C compiler can build it.
 */

#define NEXT ((void *) -1L) /* RTLD_NEXT */
#define PIECE_NS 1300000L
#define MEASURED_NS 1000L

struct time { long seconds, nanoseconds; };

extern void *dlsym(void *, const char *);

static int started; /* whether fio has come to its sleeps */
static long skipped_ns;

/* Until it sleeps, each look at the clock is a piece later than the one before. */
int clock_gettime(int clock, struct time *now)
{
    static int (*real)(int, struct time *);
    int failed;

    if (!real)
        real = (int (*)(int, struct time *)) dlsym(NEXT, "clock_gettime");
    failed = real(clock, now);
    if (!failed && !started) {
        skipped_ns += PIECE_NS;
        now->nanoseconds += skipped_ns;
        now->seconds += now->nanoseconds / 1000000000L;
        now->nanoseconds %= 1000000000L;
    }
    return failed;
}

/* Sleeps of 1 us take no time, so fio spins for no pause. */
int nanosleep(const struct time *asked, struct time *left)
{
    static int (*real)(const struct time *, struct time *);

    if (!real)
        real = (int (*)(const struct time *, struct time *)) dlsym(NEXT, "nanosleep");
    if (!asked->seconds && asked->nanoseconds == MEASURED_NS) {
        started = 1;
        return 0;
    }
    return real(asked, left);
}
