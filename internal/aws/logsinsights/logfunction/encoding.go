// SPDX-License-Identifier: Apache-2.0

package logfunction

import (
	"crypto/md5" //nolint:gosec // md5 is a function of the language; nothing trusts it
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"

	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

func encodings() map[string]Function {
	return map[string]Function{
		"jsonParse": plain(1, 1, func(a []logvalue.Value) logvalue.Value {
			parsed, _ := logvalue.FromJSON(a[0].String()) // Null if it is not JSON
			return parsed
		}),
		"jsonStringify": plain(1, 1, func(a []logvalue.Value) logvalue.Value { return logvalue.Text(a[0].JSON()) }),
		"urlencode":     mapped(url.QueryEscape),
		"urldecode":     decoder(url.QueryUnescape),
		"base64encode":  mapped(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		"base64decode": decoder(func(s string) (string, error) {
			decoded, err := base64.StdEncoding.DecodeString(s)
			return string(decoded), err
		}),
		"md5": mapped(func(s string) string {
			sum := md5.Sum([]byte(s)) //nolint:gosec // as above
			return hex.EncodeToString(sum[:])
		}),
		"sha256": mapped(func(s string) string {
			sum := sha256.Sum256([]byte(s))
			return hex.EncodeToString(sum[:])
		}),
	}
}

// decoder makes a function that is Null if its argument cannot be decoded.
func decoder(decode func(string) (string, error)) Function {
	return plain(1, 1, func(a []logvalue.Value) logvalue.Value {
		text, err := decode(a[0].String())
		if err != nil {
			return logvalue.Null()
		}
		return logvalue.Text(text)
	})
}
