/* SPDX-License-Identifier: MIT */
/*
 * What the daemon and the processes that keep its replicas' output agree on (relay.c is such a
 * process, local_relay.c starts and ends them).
 *
 * Started as RELAY_NAME with a pipe as standard input and a log as standard output, with the
 * flock of the log's open file held by whoever started it: so the log is locked from before the
 * start until the end. Status: 0, or the errno that the log could not be written for.
 */
#ifndef KXFS_BACKEND_RELAY_H
#define KXFS_BACKEND_RELAY_H

/* argv[0], and the name in ps. Not like kxfs: "pkill kxfs" means the daemon. */
#define RELAY_NAME "job-output"

/*
 * Take what the pipe holds now, and end. The default of this signal is to be ignored: a relay
 * that has not quite begun is not ended by it, so it is sent until the relay is gone.
 */
#define RELAY_ENOUGH SIGURG

#endif
