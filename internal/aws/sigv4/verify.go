// SPDX-License-Identifier: Apache-2.0

package sigv4

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Verify reports whether the holder of the key signed that request, which must be the one that was read. It does not
// look at the time, see Current. Errors are *Refusal.
func (s Signed) Verify(key Key, r Request) error {
	var stack [4096]byte
	canonical, refusal := s.canonical(stack[:0], r)
	if refusal != nil {
		return refusal
	}
	hash := sha256.Sum256(canonical)

	toSign := append(make([]byte, 0, 256), algorithm+"\n"...) // its own, for what a hash.Hash is given moves to the heap
	toSign = s.SignedAt.UTC().AppendFormat(toSign, dateLayout)
	for _, part := range [...]string{"\n", s.Date, "/", s.Region, "/", s.Service, "/", terminator, "\n"} {
		toSign = append(toSign, part...)
	}
	toSign = hex.AppendEncode(toSign, hash[:])

	mac := hmac.New(sha256.New, key[:])
	_, _ = mac.Write(toSign)
	if !hmac.Equal(mac.Sum(toSign[:0]), s.signature[:]) {
		return mismatch(RuleMismatch, "a canonical request whose SHA-256 is "+hex.EncodeToString(hash[:]),
			"check the secret access key, and that nothing between the client and here changes the request; "+
				"the client's debug output has its own canonical request")
	}
	return nil
}

// canonical appends the canonical request, whose hash is signed.
func (s *Signed) canonical(out []byte, r Request) ([]byte, *Refusal) {
	switch {
	case len(s.Headers) == 0:
		return nil, incomplete(RuleMissing, "", "read the signature first")
	case !isMethod(r.Method):
		return nil, incomplete(RuleRequest, "method "+quote(r.Method), "send it in upper-case letters")
	case r.Host == "" || !all(r.Host, isGraphic):
		return nil, incomplete(RuleRequest, "host "+quote(r.Host), "send the Host header without spaces")
	case r.Path != "" && r.Path[0] != '/':
		return nil, incomplete(RuleRequest, "path "+quote(r.Path), "begin the path with a slash")
	case !isHash(r.PayloadHash):
		return nil, incomplete(RuleRequest, "no hash of the body", "hash the body with SHA-256")
	}
	out = append(append(out, r.Method...), '\n')
	out = append(appendPath(out, r.Path), '\n')

	var stack [16]parameter
	query, refusal := readQuery(r.RawQuery, stack[:0])
	if refusal != nil {
		return nil, refusal
	}
	sortQuery(query)
	between := ""
	for _, p := range query {
		if s.Presigned && p.name == "X-Amz-Signature" {
			continue
		}
		out = append(append(append(append(out, between...), p.name...), '='), p.value...)
		between = "&"
	}
	out = append(out, '\n')

	for _, name := range s.Headers {
		out = append(append(out, name...), ':')
		if name == "host" {
			out = append(append(out, r.Host...), '\n')
			continue
		}
		spelled, ok := find(r.Header, name)
		if !ok {
			return nil, mismatch(RuleSignedHeaders, "no header "+quote(name)+", or in two spellings", "send every header that is signed, once")
		}
		for i, value := range r.Header[spelled] {
			if i > 0 {
				out = append(out, ',')
			}
			if out, ok = appendFolded(out, value); !ok {
				return nil, incomplete(RuleRequest, "header "+quote(name)+" with a control character", "send values of visible characters and spaces")
			}
		}
		out = append(out, '\n')
	}
	out = append(out, '\n')
	for i, name := range s.Headers {
		if i > 0 {
			out = append(out, ';')
		}
		out = append(out, name...)
	}
	return append(append(out, '\n'), r.PayloadHash...), nil
}

// find is how the request spells the name of a header, if it does so in one way.
func find(header map[string][]string, name string) (spelled string, ok bool) {
	for s, values := range header {
		if len(values) > 0 && equalFold(s, name) {
			if ok {
				return "", false
			}
			spelled, ok = s, true
		}
	}
	return spelled, ok
}

// appendPath appends the path without empty, dot and dot-dot segments, and with all escaped (again) but what is
// unreserved.
func appendPath(out []byte, path string) []byte {
	start := len(out)
	for rest, more := path, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch segment {
		case "", ".":
		case "..":
			if i := bytes.LastIndexByte(out[start:], '/'); i >= 0 {
				out = out[:start+i]
			}
		default:
			out = append(out, '/')
			for i := range len(segment) {
				out = appendEscaped(out, segment[i])
			}
		}
	}
	if len(out) == start || strings.HasSuffix(path, "/") {
		out = append(out, '/')
	}
	return out
}

// appendFolded appends the value of a header, trimmed and with one space for several.
func appendFolded(out []byte, value string) ([]byte, bool) {
	value = strings.Trim(value, " ")
	for i := range len(value) {
		c := value[i]
		if c < ' ' || c == 0x7f {
			return out, false
		}
		if c != ' ' || value[i-1] != ' ' {
			out = append(out, c)
		}
	}
	return out, true
}

func isMethod(s string) bool {
	return s != "" && all(s, func(c byte) bool { return c >= 'A' && c <= 'Z' })
}

func isHash(s string) bool {
	return len(s) == 2*sha256.Size && all(s, func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' })
}
