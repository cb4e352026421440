/* SPDX-License-Identifier: MIT */
/* Reading tokens, certificates and keys. */
#include "backend/credential_files.h"

#include <errno.h>

#include "backend/file.h"

#define TOKEN_MAX (256u << 10)
#define PEM_MAX	  (1u << 20)

static void clear_secret(char **p)
{
	if (*p)
		explicit_bzero(*p, strlen(*p));
	free(*p);
	*p = NULL;
}

void credential_files_clear(struct credential_files *f)
{
	clear_secret(&f->token);
	clear_secret(&f->cert_pem);
	clear_secret(&f->key_pem);
}

bool credential_files_any(const struct spec_connection *c)
{
	return *c->token_file || (*c->cert_file && !*c->cert_pem) || (*c->key_file && !*c->key_pem);
}

static int refuse(char **ret_text, int err, const char *what, const char *file, const char *why)
{
	if (asprintf(ret_text, "%s file %s of the kubeconfig: %s", what, file, why) < 0)
		*ret_text = NULL;
	return err;
}

static int read_token(const char *file, char **ret, char **ret_text)
{
	cleanup(clear_secret) char *text = NULL;
	size_t len, begin;
	int err = file_read_other(file, TOKEN_MAX, &text, &len);

	if (err < 0)
		return refuse(ret_text, err, "token", file, strerror(-err));
	begin = strspn(text, " \t\r\n");
	while (len > begin && strchr(" \t\r\n", text[len - 1]))
		len--;
	if (len == begin)
		return refuse(ret_text, -EINVAL, "token", file, "it is empty");
	for (size_t i = begin; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return refuse(ret_text, -EINVAL, "token", file,
				      "it holds more than one line, or no text");
	*ret = strndup(text + begin, len - begin);
	return *ret ? 0 : -ENOMEM;
}

static int read_pem(const char *what, const char *file, char **ret, char **ret_text)
{
	size_t len;
	int err = file_read_other(file, PEM_MAX, ret, &len);

	if (err < 0)
		return refuse(ret_text, err, what, file, strerror(-err));
	return strstr(*ret, "-----BEGIN ") ? 0
					   : refuse(ret_text, -EINVAL, what, file, "it is no PEM");
}

int credential_files_read(const struct spec_connection *c, struct credential_files *ret,
			  char **ret_text)
{
	int err = 0;

	*ret = (struct credential_files){0};
	*ret_text = NULL;
	if (*c->cert_file && !*c->cert_pem)
		err = read_pem("client certificate", c->cert_file, &ret->cert_pem, ret_text);
	if (err == 0 && *c->key_file && !*c->key_pem)
		err = read_pem("client key", c->key_file, &ret->key_pem, ret_text);
	if (err < 0 || !*c->token_file)
		return err;
	err = read_token(c->token_file, &ret->token, ret_text);
	if (err == 0 || err == -ENOMEM || !*c->token)
		return err;
	free(take_ptr(*ret_text));
	return 0;
}
