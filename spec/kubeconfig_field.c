/* SPDX-License-Identifier: MIT */
/*
 * The fields of an entry of a kubeconfig file, by what they may hold. Values are never quoted in a
 * message: they may be secrets.
 */
#include <errno.h>
#include <strings.h>

#include "spec/base64.h"
#include "spec/kubeconfig_impl.h"

int kubeconfig_no_memory(struct kubeconfig_reader *r)
{
	return spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory");
}

int kubeconfig_text(struct kubeconfig_reader *r, const struct spec_yaml *v, const char *key,
		    char **ret)
{
	bool none = !v || spec_yaml_is_null(v);

	if (!none && v->type != SPEC_YAML_SCALAR)
		return kubeconfig_error(r->e, r->file, v, "%s must be text", key);
	if (!none && strlen(v->text) != v->len)
		return kubeconfig_error(r->e, r->file, v, "%s holds a NUL character", key);
	*ret = strdup(none ? "" : v->text);
	return *ret ? 0 : kubeconfig_no_memory(r);
}

const struct spec_yaml *kubeconfig_field(const struct kubeconfig_reader *r, const char *key)
{
	return r->body ? spec_yaml_get(r->body, key) : NULL;
}

int kubeconfig_read_text(struct kubeconfig_reader *r, const char *key, char **ret)
{
	return kubeconfig_text(r, kubeconfig_field(r, key), key, ret);
}

int kubeconfig_header(struct kubeconfig_reader *r, const struct spec_yaml *v, const char *key,
		      char **ret)
{
	int err = kubeconfig_text(r, v, key, ret);

	for (const char *s = err < 0 ? "" : *ret; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return kubeconfig_error(
				r->e, r->file, v,
				"%s holds a line break or another control character; "
				"write it on one line",
				key);
	}
	return err;
}

int kubeconfig_read_header(struct kubeconfig_reader *r, const char *key, char **ret)
{
	return kubeconfig_header(r, kubeconfig_field(r, key), key, ret);
}

int kubeconfig_read_bool(struct kubeconfig_reader *r, const char *key, bool *ret)
{
	const struct spec_yaml *v = kubeconfig_field(r, key);

	*ret = false;
	if (!v || spec_yaml_is_null(v))
		return 0;
	if (v->type != SPEC_YAML_SCALAR || spec_yaml_resolve(v) != SPEC_YAML_BOOL)
		return kubeconfig_error(r->e, r->file, v, "%s must be true or false", key);
	*ret = v->text[0] == 't' || v->text[0] == 'T';
	return 0;
}

int kubeconfig_absolute(struct kubeconfig_reader *r, char **path)
{
	const char *slash = strrchr(r->file->name, '/');
	char *full;

	if (!**path || **path == '/')
		return 0;
	if (asprintf(&full, "%.*s%s", slash ? (int)(slash - r->file->name) + 1 : 0, r->file->name,
		     *path) < 0)
		return kubeconfig_no_memory(r);
	free(*path);
	*path = full;
	return 0;
}

int kubeconfig_read_path(struct kubeconfig_reader *r, const char *key, char **ret)
{
	int err = kubeconfig_read_text(r, key, ret);

	return err < 0 ? err : kubeconfig_absolute(r, ret);
}

int kubeconfig_read_pem(struct kubeconfig_reader *r, const char *key, char **ret)
{
	const struct spec_yaml *v = kubeconfig_field(r, key);
	cleanup_free char *text = NULL;
	size_t len;
	int err = kubeconfig_read_text(r, key, &text);

	if (!text)
		return err;
	*ret = spec_base64_decode(text, strlen(text), &len);
	explicit_bzero(text, strlen(text));
	if (!*ret && errno == ENOMEM)
		return kubeconfig_no_memory(r);
	if (!*ret)
		return kubeconfig_error(r->e, r->file, v, "%s is no base64", key);
	if (v && len > 0 && (strlen(*ret) != len || !strstr(*ret, "-----BEGIN ")))
		return kubeconfig_error(r->e, r->file, v,
					"%s must be base64 of a PEM text (\"-----BEGIN ...\")",
					key);
	return 0;
}

/* A URL of one of SCHEMES: a host, and nothing that a URL can't have or that comes after its path. */
static bool is_url(const char *url, const char *const *schemes)
{
	const char *host = NULL;

	for (; *schemes && !host; schemes++)
		if (strncasecmp(url, *schemes, strlen(*schemes)) == 0)
			host = url + strlen(*schemes);
	if (!host || !*host || strchr("/:", *host))
		return false;
	for (; *host; host++)
		if ((unsigned char)*host <= ' ' || *host == 0x7f || strchr("?#\"\\", *host))
			return false;
	return true;
}

int kubeconfig_read_server(struct kubeconfig_reader *r, char **ret)
{
	static const char *const schemes[] = {"https://", "http://", NULL};
	int err = kubeconfig_read_text(r, "server", ret);
	size_t len;

	if (!*ret)
		return err;
	len = strlen(*ret);
	while (len > 0 && (*ret)[len - 1] == '/')
		(*ret)[--len] = '\0';
	if (!is_url(*ret, schemes))
		return kubeconfig_error(r->e, r->file, kubeconfig_field(r, "server"),
					"server is no URL such as https://HOST:PORT");
	if (strchr(*ret, '@'))
		return kubeconfig_error(r->e, r->file, kubeconfig_field(r, "server"),
					"server holds a \"@\"; a user and a password belong to the "
					"user's entry");
	return 0;
}

int kubeconfig_read_proxy(struct kubeconfig_reader *r, char **ret)
{
	static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://",
					      NULL};
	int err = kubeconfig_read_text(r, "proxy-url", ret);

	if (!*ret || !**ret || is_url(*ret, schemes))
		return err;
	return kubeconfig_error(r->e, r->file, kubeconfig_field(r, "proxy-url"),
				"proxy-url is no URL such as http://HOST:PORT (or https, socks5)");
}
