// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/pki"
)

// short is the beginning of a fingerprint: the part of a key that is kept forever. 96 bits are enough: to find another
// key with the same ones takes 2^96 attempts, and an attacker with one would gain a denial. By chance a million keys
// meet once in 10^17 times.
type short [12]byte

func shorten(fingerprint [32]byte) short { return short(fingerprint[:12]) }

// group is a line of keys whose certificates have expired: those of one owner on one machine.
type group struct {
	owner, machine string
	// last is since when the newest client certificate among them was valid, zero if there is none.
	last time.Time
	keys []short
}

// keysPerLine keeps lines short enough to look at.
const keysPerLine = 64

// maxLine is the most bytes that a line may have.
const maxLine = 16 << 10

// append appends the line, without its end. Each is written several times while its segment grows: it leaves no
// garbage.
func (e Entry) append(b []byte) []byte {
	b = appendText(b, "uid=", e.UID)
	for _, f := range [...][2]string{
		{" csr=", e.CSR}, {" signer=", e.Signer}, {" node=", e.Node}, {" subject=", e.Subject}, {" machine=", e.Machine}, {" requester=", e.Requester},
	} {
		if f[1] != "" {
			b = appendText(b, f[0], f[1])
		}
	}
	b = base64.RawURLEncoding.AppendEncode(append(b, " key="...), e.Key[:])
	if e.Certificate != (pki.Fingerprint{}) {
		b = base64.RawURLEncoding.AppendEncode(append(b, " cert="...), e.Certificate[:])
	}
	for _, f := range [...][2]string{{" serial=", e.Serial}, {" issuer=", e.Issuer}} {
		if f[1] != "" {
			b = appendText(b, f[0], f[1])
		}
	}
	b = e.NotBefore.AppendFormat(append(b, " from="...), time.RFC3339)
	return e.NotAfter.AppendFormat(append(b, " to="...), time.RFC3339)
}

func appendText(b []byte, name, text string) []byte {
	return append(append(b, name...), escape(text)...)
}

func parseEntry(line string) (Entry, error) {
	r := reader{rest: line, more: true}
	e := Entry{
		UID: r.text("uid", true), CSR: r.text("csr", false), Signer: r.text("signer", false),
		Node: r.text("node", false), Subject: r.text("subject", false), Machine: r.text("machine", false),
		Requester: r.text("requester", false),
	}
	r.key("key", r.take("key", true), e.Key[:])
	if c := r.take("cert", false); c != "" {
		r.key("cert", c, e.Certificate[:])
	}
	e.Serial, e.Issuer = r.text("serial", false), r.text("issuer", false)
	e.NotBefore, e.NotAfter = r.time("from", true), r.time("to", true)
	if r.err == nil && e.Node != "" && e.Subject != "" {
		r.err = errors.New("it has a node and a subject")
	}
	return e, r.end()
}

func (g group) line() string {
	var b strings.Builder
	b.WriteString("owner=" + escape(g.owner))
	if g.machine != "" {
		b.WriteString(" machine=" + escape(g.machine))
	}
	if !g.last.IsZero() {
		b.WriteString(" last=" + g.last.Format(time.RFC3339))
	}
	b.WriteString(" keys=")
	for n, k := range g.keys {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(base64.RawURLEncoding.EncodeToString(k[:]))
	}
	return b.String()
}

func parseGroup(line string) (group, error) {
	r := reader{rest: line, more: true}
	g := group{owner: r.text("owner", true), machine: r.text("machine", false), last: r.time("last", false)}
	for k := range strings.SplitSeq(r.take("keys", true), ",") {
		var s short
		r.key("keys", k, s[:])
		g.keys = append(g.keys, s)
	}
	if r.err == nil && len(g.keys) > keysPerLine {
		r.err = fmt.Errorf("it has %d keys; a line has at most %d", len(g.keys), keysPerLine)
	}
	return g, r.end()
}

// reader reads name=value fields in their order. After an error it reads nothing.
type reader struct {
	rest string
	more bool // there is a field in rest
	err  error
}

func (r *reader) take(name string, required bool) string {
	if r.err != nil {
		return ""
	}
	field, rest, more := strings.Cut(r.rest, " ")
	value, ok := strings.CutPrefix(field, name+"=")
	switch {
	case r.more && ok && value != "":
		r.rest, r.more = rest, more
		return value
	case required || ok:
		r.err = fmt.Errorf("%s is missing", name)
	}
	return ""
}

func (r *reader) text(name string, required bool) string {
	value := r.take(name, required)
	text, err := unescape(value)
	if err == nil && len(text) > maxField {
		err = fmt.Errorf("%d bytes are too many", len(text))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
	return text
}

func (r *reader) time(name string, required bool) time.Time {
	value := r.take(name, required)
	if value == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, value)
	if (err != nil || t.UTC().Format(time.RFC3339) != value) && r.err == nil {
		r.err = fmt.Errorf("%s must be a time such as 2006-01-02T15:04:05Z", name)
	}
	return t.UTC()
}

func (r *reader) key(name, value string, into []byte) {
	if r.err != nil {
		return
	}
	n, err := base64.RawURLEncoding.Strict().Decode(into, []byte(value[:min(len(value), base64.RawURLEncoding.EncodedLen(len(into)))]))
	if err != nil || n != len(into) || len(value) != base64.RawURLEncoding.EncodedLen(n) {
		r.err = fmt.Errorf("%s must be a fingerprint of %d bytes", name, len(into))
	}
}

func (r *reader) end() error {
	if r.err == nil && r.more {
		return errors.New("it has a field too many, or in another order")
	}
	return r.err
}

// escape leaves a field readable, and one word.
func escape(s string) string {
	special := func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '%' }
	if strings.IndexFunc(s, special) < 0 {
		return s // as nearly all are
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; special(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape reads what escape wrote and nothing else. Its result shares no memory with a segment's text.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		if escape(s) != s {
			return "", errors.New("it has a character that should be escaped")
		}
		return strings.Clone(s), nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		var c byte
		if i+2 >= len(s) {
			return "", errors.New("it ends within an escaped character")
		}
		if _, err := fmt.Sscanf(s[i+1:i+3], "%02X", &c); err != nil {
			return "", errors.New("it has a wrongly escaped character")
		}
		b.WriteByte(c)
		i += 2
	}
	if escape(b.String()) != s {
		return "", errors.New("it has a wrongly escaped character")
	}
	return b.String(), nil
}
