/* SPDX-License-Identifier: MIT */
/* The errno and text of a failed reply, sent by the server or not received at all. */

#include "backend/client/http.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"

int http_refusal(const struct http_reply *reply, const struct spec_asked *asked, char **ret_text)
{
	if (!reply->err)
		return spec_reply_errno(reply->status, reply->body, reply->len, asked, ret_text);
	*ret_text = text_print("%s %s: %s", asked->verb, asked->resource,
			       *reply->text ? reply->text : strerror(-reply->err));
	return reply->err;
}

bool http_is_unknown(const struct http_reply *reply)
{
	if (reply->err)
		return reply->sent;
	return !spec_reply_did_nothing(reply->status, reply->body, reply->len);
}
