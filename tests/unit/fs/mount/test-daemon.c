/* SPDX-License-Identifier: MIT */
/* The service manager's socket, given by path or abstract. An invalid address is ignored. */
#include "fs/mount/daemon.h"
#include "tests/unit/unit.h"

/* Bind a socket to ADDRESS ('@': abstract), and assert that it receives TEXT. */
static void assert_heard(const char *address, const char *text)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(address);
	char got[256] = "";
	struct notify n;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(un.sun_path, address, strlen(address));
	if (address[0] == '@')
		un.sun_path[0] = 0;
	assert_int_equal(bind(fd, (struct sockaddr *)&un, (socklen_t)len), 0);
	setenv("NOTIFY_SOCKET", address, 1);
	notify_init(&n);
	assert_null(getenv("NOTIFY_SOCKET"));
	notify_send(&n, "%s", text);
	assert_int_equal(recv(fd, got, sizeof(got), MSG_DONTWAIT), strlen(text));
	assert_string_equal(got, text);
	close(fd);
}

static void test_path(void **state)
{
	char dir[] = "/tmp/kxfs-test-notify-XXXXXX";
	char path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	assert_heard(path, "READY=1\nSTATUS=up");
	unlink(path);
	rmdir(dir);
}

static void test_abstract(void **state)
{
	char name[64];

	snprintf(name, sizeof(name), "@kxfs-test-notify-%d", (int)getpid());
	assert_heard(name, "STOPPING=1");
}

static void test_nobody(void **state)
{
	static const char *const wrong[] = {"", "@", "relative", "/nonexistent/socket", NULL};
	struct notify n;

	for (size_t i = 0; i < array_size(wrong); i++) {
		if (wrong[i])
			setenv("NOTIFY_SOCKET", wrong[i], 1);
		else
			unsetenv("NOTIFY_SOCKET");
		notify_init(&n);
		assert_null(getenv("NOTIFY_SOCKET"));
		notify_send(&n, "READY=1");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_abstract),
		cmocka_unit_test(test_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
