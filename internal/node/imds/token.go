// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// maxTTL is EC2's: six hours.
const maxTTL = 21600

const (
	expirySize = 8
	tokenSize  = expirySize + sha256.Size
)

// signer makes tokens: a moment in seconds, and a seal over it and the instance's id.
type signer struct{ key []byte }

func (s signer) seal(expiry []byte, instance string) []byte {
	mac := hmac.New(sha256.New, s.key)
	_, _ = mac.Write([]byte("muster instance metadata token 1\x00")) // never fails; it says so itself
	_, _ = mac.Write(expiry)
	_, _ = mac.Write([]byte(instance))
	return mac.Sum(nil)
}

// token is one of an instance, good until a moment.
func (s signer) token(instance string, expires time.Time) string {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, tokenSize), uint64(expires.Unix())) //nolint:gosec // G115: after 1970
	return base64.RawURLEncoding.EncodeToString(append(raw, s.seal(raw, instance)...))
}

// check tells for how long a token of an instance is still good; nothing is said about why one is not.
func (s signer) check(token, instance string, now time.Time) (left time.Duration, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != tokenSize || !hmac.Equal(raw[expirySize:], s.seal(raw[:expirySize], instance)) {
		return 0, false
	}
	expires := time.Unix(int64(binary.BigEndian.Uint64(raw)), 0) //nolint:gosec // G115: sealed, so it is what token wrote
	left = expires.Sub(now)
	return left, left > 0
}
