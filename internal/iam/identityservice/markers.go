// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"

	"muster.dev/muster/internal/aws/awsshape"
)

// A marker names the last item of a page. It is sealed with the account, the action and the parameters of the request,
// as the tokens of other services' lists are: one that somebody makes up, or that another list ended with, is refused.
// It holds nothing that the page did not.
const (
	markerVersion = 1
	markerHeader  = 5 // the version, and which key sealed it
	markerSeal    = 16
	// maxMarker bounds what is decoded: a key is a name or an ARN.
	maxMarker = 4096
)

// markers are those of one request. It implements marking.
type markers struct {
	keys    *sealKeys
	account string
	action  string
	input   awsshape.Object
}

// scope is what a marker is good for. The size of a page may change from page to page.
func (m markers) scope() ([]byte, error) {
	parameters := maps.Clone(m.input)
	delete(parameters, "Marker")
	delete(parameters, "MaxItems")
	return json.Marshal([]any{m.account, m.action, parameters})
}

// markerKey is the key of markers that belongs to one of sessions.
func markerKey(session []byte) []byte {
	mac := hmac.New(sha256.New, session)
	mac.Write([]byte("markers of lists"))
	return mac.Sum(nil)
}

func (m markers) seal(id uint32, last string) ([]byte, bool) {
	key, ok := m.keys.markers[id]
	if !ok {
		return nil, false
	}
	mac := hmac.New(sha256.New, key)
	scope, err := m.scope()
	if err != nil {
		return nil, false
	}
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(scope))))
	mac.Write(scope)
	mac.Write([]byte(last))
	return mac.Sum(nil)[:markerSeal], true
}

// Seal makes the marker of a page whose last item has a key.
func (m markers) Seal(last string) (string, error) {
	seal, ok := m.seal(m.keys.newest, last)
	if !ok || last == "" {
		return "", errors.New("a page ends with an item that has no key, or there is no key to seal its marker with")
	}
	made := binary.BigEndian.AppendUint32([]byte{markerVersion}, m.keys.newest)
	return base64.RawURLEncoding.EncodeToString(append(append(made, seal...), last...)), nil
}

// Open returns the key behind which the next page begins.
func (m markers) Open(marker string) (string, bool) {
	if len(marker) > maxMarker {
		return "", false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(marker)
	if err != nil || len(raw) <= markerHeader+markerSeal || raw[0] != markerVersion || base64.RawURLEncoding.EncodeToString(raw) != marker { // line breaks are skipped in decoding
		return "", false
	}
	last := string(raw[markerHeader+markerSeal:])
	seal, ok := m.seal(binary.BigEndian.Uint32(raw[1:]), last)
	return last, ok && hmac.Equal(seal, raw[markerHeader:markerHeader+markerSeal])
}
