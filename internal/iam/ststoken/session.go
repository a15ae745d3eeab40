// SPDX-License-Identifier: Apache-2.0

package ststoken

import (
	"net/url"
	"strings"
)

// Session is the access key and the session token that a token names, whether or not it is one that Parse takes: to
// report the session of a refused token. Nothing of it is proven. It reports false if there is no session token, or not
// exactly one of each. The session token is a secret.
func Session(raw string) (accessKeyID, sessionToken string, ok bool) {
	text, refusal := decode(raw)
	if refusal != nil {
		return "", "", false
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", "", false
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", "", false
	}
	credential, token := query["X-Amz-Credential"], query["X-Amz-Security-Token"]
	if len(credential) != 1 || len(token) != 1 || token[0] == "" {
		return "", "", false
	}
	accessKeyID, _, ok = strings.Cut(credential[0], "/")
	if !ok || accessKeyID == "" {
		return "", "", false
	}
	return accessKeyID, token[0], true
}
