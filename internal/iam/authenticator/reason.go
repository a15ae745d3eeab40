// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"encoding/json"
	"net/http"
)

// reasonHeader tells why somebody was refused. The body is as that of aws-iam-authenticator, which says nothing; API
// servers do not look at the header, and every client that may ask at all may know.
const reasonHeader = "Muster-Refused"

// Reason is the rule that refused, its evidence and the fix.
type Reason struct {
	Rule string `json:"rule"`
	Saw  string `json:"saw,omitempty"`
	Fix  string `json:"fix,omitempty"`
}

// writeReason puts the reason of a refusal into the header, as JSON in ASCII: the seen value may be anything.
func writeReason(h http.Header, d Decision) {
	if d.Status == http.StatusOK {
		return
	}
	raw, err := json.Marshal(Reason{Rule: d.Rule, Saw: d.Saw, Fix: d.Fix})
	if err != nil {
		return
	}
	h.Set(reasonHeader, ascii(raw))
}

// ascii writes what is beyond ASCII as JSON's escapes.
func ascii(raw []byte) string {
	const hex = "0123456789abcdef"
	var out []byte
	escape := func(unit uint16) {
		out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
	}
	for _, r := range string(raw) {
		switch {
		case r < 0x80:
			out = append(out, byte(r)) //nolint:gosec // G115: it is ASCII
		case r > 0xffff:
			escape(uint16(0xd800 + (r-0x10000)>>10)) //nolint:gosec // G115: a surrogate has 16 bits
			escape(uint16(0xdc00 + (r-0x10000)&0x3ff))
		default:
			escape(uint16(r))
		}
	}
	return string(out)
}

// ReadReason reads why somebody was refused. A refusal without a reason has the rule "unknown".
func ReadReason(h http.Header) Reason {
	r := Reason{}
	if err := json.Unmarshal([]byte(h.Get(reasonHeader)), &r); err != nil || r.Rule == "" {
		return Reason{Rule: "unknown", Saw: "the authenticator does not say why; its log does (muster logs authenticator)"}
	}
	return r
}
