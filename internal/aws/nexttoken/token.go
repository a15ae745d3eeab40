// SPDX-License-Identifier: Apache-2.0

// Package nexttoken has the pages of list actions. A token names the key of the last item that was given out, so that
// items which come and go between two pages shift nothing: each item that is there the whole time is in exactly one
// page.
//
//	What happens if                                     Then
//	the item that a token names is gone                 the next page begins behind its place
//	the service is killed between two pages             the token is still good: nothing is kept
//	a token of another action or account is sent        refused: it is sealed with them
//	the same token comes with other parameters          refused: it is sealed with their hash
//	a token is changed                                  refused: nobody can make one without the key
package nexttoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"muster.dev/muster/internal/aws/awsfault"
)

// version is the first byte of a token.
const version = 1

// macSize is how much of the HMAC a token has.
const macSize = 16

// maxToken bounds what is decoded. A key is a name or an ARN, of 2 KiB at most.
const maxToken = 4096

// KeySize is the size of a Sealer's key.
const KeySize = 32

// Scope is what a token is good for.
type Scope struct {
	Account, Service, Action string
	// Parameters of the request but the token itself and the size of a page, which may change from page to page. It
	// must be what encoding/json writes the same way each time, such as a map or a struct.
	Parameters any
}

// Sealer makes tokens and reads them.
type Sealer struct{ key [KeySize]byte }

// NewSealer makes a Sealer with a key that outlives the process.
func NewSealer(key [KeySize]byte) *Sealer { return &Sealer{key} }

// Seal makes the token of a page whose last item has a key.
func (s *Sealer) Seal(scope Scope, last string) (string, error) {
	if last == "" {
		return "", errors.New("a page ends with an item that has no key")
	}
	mac, err := s.mac(scope, last)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(append([]byte{version}, mac...), last...)), nil
}

// Open returns the key behind which the next page begins. No token is the first page. An *awsfault.Error says that a
// token is not one of this request's.
func (s *Sealer) Open(scope Scope, token string) (string, error) {
	if token == "" {
		return "", nil
	}
	refusal := awsfault.Errorf(codeOf(scope.Service), "The pagination token is not valid: it must come unchanged from a page of the same request; begin again without it")
	if len(token) > maxToken {
		return "", refusal
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) <= 1+macSize || raw[0] != version || base64.RawURLEncoding.EncodeToString(raw) != token { // line breaks are skipped in decoding
		return "", refusal
	}
	last := string(raw[1+macSize:])
	mac, err := s.mac(scope, last)
	if err != nil {
		return "", err
	}
	if !hmac.Equal(mac, raw[1:1+macSize]) {
		return "", refusal
	}
	return last, nil
}

func (s *Sealer) mac(scope Scope, last string) ([]byte, error) {
	text, err := json.Marshal(struct {
		Scope
		Last []byte
	}{scope, []byte(last)})
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write(text)
	return mac.Sum(nil)[:macSize], nil
}

// codeOf is what a service calls a bad token.
func codeOf(service string) string {
	switch service {
	case "ec2", "autoscaling", "ssm":
		return "InvalidNextToken"
	case "arc-zonal-shift", "fis":
		return "ValidationException"
	case "kms":
		return "InvalidMarkerException"
	case "pricing":
		return "InvalidNextTokenException"
	case "ecr", "eks", "logs", "tagging":
		return "InvalidParameterException"
	case "elasticfilesystem":
		return "BadRequest"
	default:
		return "ValidationError"
	}
}
