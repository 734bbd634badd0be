// SPDX-License-Identifier: Apache-2.0
/*
 * What a worker uses within its window: cycles where the machine counts them, and
 * processor time. bench/worker/cost.go is the same in Go.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "peer.h"

static int cycles_open(bool kernel, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.exclude_kernel = !kernel,
		.exclude_user = kernel,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* The kernel's cycles are those of the processor: NAPI threads are not of this process. */
void cost_open(struct cost *c)
{
	*c = (struct cost){ .user_fd = cycles_open(false, 0, -1), .kernel_fd = -1 };
	if (c->user_fd >= 0)
		c->kernel_fd = cycles_open(true, -1, sched_getcpu());
	if (c->kernel_fd < 0)
		c->err = errno;
}

static uint64_t cycles_read(int fd)
{
	uint64_t v;

	return fd >= 0 && read(fd, &v, sizeof(v)) == sizeof(v) ? v : 0;
}

static uint64_t nanoseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_usec * 1000ULL;
}

void cost_read(struct cost *c, struct usage *u)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	*u = (struct usage){
		.user_ns = nanoseconds(r.ru_utime),
		.system_ns = nanoseconds(r.ru_stime),
		.user_cycles = cycles_read(c->user_fd),
		.kernel_cycles = cycles_read(c->kernel_fd),
	};
}

void cost_print(const struct cost *c)
{
	const struct usage *a = &c->opened, *b = &c->closed;

	printf(",\"cost\":{\"user_ns\":%" PRIu64 ",\"system_ns\":%" PRIu64,
	       b->user_ns - a->user_ns, b->system_ns - a->system_ns);
	if (c->err)
		printf(",\"no_cycles\":\"not supported: perf_event_open: %s\"}", strerror(c->err));
	else
		printf(",\"cycles\":{\"user\":%" PRIu64 ",\"kernel\":%" PRIu64 "}}",
		       b->user_cycles - a->user_cycles, b->kernel_cycles - a->kernel_cycles);
}
