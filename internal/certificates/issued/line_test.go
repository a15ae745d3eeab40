// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/certificates/pki"
)

const (
	entryLine = "uid=5a1f9d0c-1b7e-4c55-9d3e-0a6f5b2c7d11 csr=csr-7x2kq signer=kubernetes.io/kubelet-serving node=ip-192-168-64-11.ec2.internal " +
		"machine=i-0123456789abcdef0 requester=system:bootstrap:abcdef key=MSBrZXkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA serial=5f issuer=my%20CA from=2026-05-01T10:00:00Z to=2026-05-08T10:00:00Z"
	groupLine = "owner=user:alice%20%25%C3%A9 machine=i-1 last=2026-05-01T10:00:00Z keys=MSBrZXkAAAAAAAAA,MiBrZXkAAAAAAAAA"
)

func TestLines(t *testing.T) {
	from := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	e := Entry{
		UID: "5a1f9d0c-1b7e-4c55-9d3e-0a6f5b2c7d11", CSR: "csr-7x2kq", Signer: pki.SignerKubeletServing,
		Node: "ip-192-168-64-11.ec2.internal", Machine: "i-0123456789abcdef0", Requester: "system:bootstrap:abcdef",
		Key: key(1), Serial: "5f", Issuer: "my CA",
		NotBefore: from, NotAfter: from.Add(168 * time.Hour),
	}
	if e.line() != entryLine {
		t.Errorf("an entry is\n%s, want\n%s", e.line(), entryLine)
	}
	if got, err := parseEntry(entryLine); err != nil || got != e {
		t.Errorf("read as %+v, %v", got, err)
	}
	// As it was written before requesters were recorded.
	before := strings.Replace(entryLine, " requester=system:bootstrap:abcdef", "", 1)
	old := e
	old.Requester = ""
	if got, err := parseEntry(before); err != nil || got != old || got.line() != before {
		t.Errorf("an old line is read as %+v, %v", got, err)
	}
	withCertificate := e
	withCertificate.Certificate = key(2)
	line := strings.Replace(entryLine, " serial=", " cert=MiBrZXkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA serial=", 1)
	if got, err := parseEntry(line); err != nil || got != withCertificate || got.line() != line {
		t.Errorf("a line with a certificate is read as %+v, %v", got, err)
	}
	g := group{owner: "user:alice %é", machine: "i-1", last: from, keys: []short{shorten(key(1)), shorten(key(2))}}
	if g.line() != groupLine {
		t.Errorf("a group is\n%s, want\n%s", g.line(), groupLine)
	}
	got, err := parseGroup(groupLine)
	if diff := cmp.Diff(g, got, cmp.AllowUnexported(group{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestLinesThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		line, old, new string
		says           string
	}{
		"empty":                     {"", "", "", "uid is missing"},
		"half a certificate":        {entryLine, " serial=", " cert=MiBrZXkAAAAA serial=", "cert must be a fingerprint of 32 bytes"},
		"without a field":           {entryLine, " key=MSBrZXkAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "", "key is missing"},
		"an empty field":            {entryLine, "csr=csr-7x2kq", "csr=", "csr is missing"},
		"in another order":          {entryLine, "serial=5f issuer=my%20CA", "issuer=my%20CA serial=5f", "from is missing"},
		"a field twice":             {entryLine, "serial=5f", "serial=5f serial=60", "from is missing"},
		"a field too many":          {entryLine, " to=2026-05-08T10:00:00Z", " to=2026-05-08T10:00:00Z x=1", "a field too many"},
		"two blanks":                {entryLine, " from", "  from", "from is missing"},
		"a blank at the end":        {entryLine, "10:00:00Z to=2026-05-08T10:00:00Z", "10:00:00Z to=2026-05-08T10:00:00Z ", "a field too many"},
		"a short key":               {entryLine, "key=MSB", "key=", "key must be a fingerprint of 32 bytes"},
		"a long key":                {entryLine, "key=MSB", "key=MSBA", "key must be a fingerprint of 32 bytes"},
		"bits after the key":        {entryLine, "AAA serial", "AAB serial", "key must be a fingerprint of 32 bytes"},
		"another zone":              {entryLine, "from=2026-05-01T10:00:00Z", "from=2026-05-01T10:00:00+01:00", "from must be a time"},
		"no time":                   {entryLine, "to=2026-05-08T10:00:00Z", "to=soon", "to must be a time"},
		"a control character":       {entryLine, "serial=5f", "serial=5\x01", "serial: it has a character that should be escaped"},
		"escaped for nothing":       {entryLine, "serial=5f", "serial=5%66", "serial: it has a wrongly escaped character"},
		"escaped in lower case":     {entryLine, "%20", "%c3", "issuer: it has a wrongly escaped character"},
		"cut within an escape":      {entryLine, "my%20CA", "my%2", "issuer: it ends within an escaped character"},
		"no number in an escape":    {entryLine, "my%20CA", "my%xxCA", "issuer: it has a wrongly escaped character"},
		"a field that is too long":  {entryLine, "my%20CA", strings.Repeat("x", maxField+1), "issuer: 601 bytes are too many"},
		"a node and a person":       {entryLine, " machine=", " subject=alice machine=", "it has a node and a subject"},
		"a group without an owner":  {groupLine, "owner=user:alice%20%25%C3%A9 ", "", "owner is missing"},
		"a group without keys":      {groupLine, " keys=MSBrZXkAAAAAAAAA,MiBrZXkAAAAAAAAA", "", "keys is missing"},
		"a group with an empty key": {groupLine, "AAAA,Mi", "AAAA,,Mi", "keys must be a fingerprint of 12 bytes"},
		"a group with many keys":    {groupLine, "keys=", "keys=" + strings.Repeat("MSBrZXkAAAAAAAAA,", 63), "it has 65 keys; a line has at most 64"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.old != "" && !strings.Contains(tc.line, tc.old) {
				t.Fatal("the line is not changed by this case")
			}
			line := strings.Replace(tc.line, tc.old, tc.new, 1)
			_, err := parseEntry(line)
			if strings.HasPrefix(tc.line, "owner") {
				_, err = parseGroup(line)
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// An added entry is written so that it can be read, whatever somebody put into a request.
func FuzzWrite(f *testing.F) {
	f.Add("uid", "csr", "signer", "node", "", "machine", "requester", "5f", "issuer", int64(0))
	f.Add("uid", "", "", "", "alice = 100 %\n", "", "a b\x1b", "", "\xff", int64(1e12))
	f.Add("", strings.Repeat("é", 500), "", "", "", "", strings.Repeat("%", 700), "", "", int64(-1e12))
	f.Fuzz(func(t *testing.T, uid, csr, signer, node, subject, machine, requester, serial, issuer string, at int64) {
		e := Entry{
			UID: uid, CSR: csr, Signer: signer, Node: node, Subject: subject, Machine: machine, Requester: requester, Key: key(1),
			Serial: serial, Issuer: issuer, NotBefore: time.Unix(at, 5), NotAfter: time.Unix(at, 5).Add(time.Hour),
		}.normal()
		g := group{owner: e.owner(), machine: e.Machine, last: e.NotBefore, keys: []short{shorten(e.Key)}}
		want := content{entries: []Entry{e}, groups: []group{g}}
		got, problems := read(&corev1.ConfigMap{Data: want.data()})
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(content{}, group{})); diff != "" || problems != nil {
			t.Errorf("%v (-want +got)\n%s", problems, diff)
		}
	})
}

// Whatever stands in a ConfigMap, reading it is safe, and what was read is the same when it was written and read again.
func FuzzRead(f *testing.F) {
	f.Add("1", entryLine+"\n", groupLine+"\n")
	f.Add("1", entryLine+"\n"+entryLine+"\n\n", groupLine)
	f.Add("2", "x", "")
	f.Fuzz(func(t *testing.T, v, certificates, keys string) {
		c, problems := read(&corev1.ConfigMap{Data: map[string]string{versionKey: v, certificatesKey: certificates, keysKey: keys}})
		if problems == nil && strings.Count(certificates, "\n") != len(c.entries) {
			t.Errorf("%d entries in %q", len(c.entries), certificates)
		}
		again, problems := read(&corev1.ConfigMap{Data: c.data()})
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(content{}, group{}), cmpopts.EquateEmpty()); diff != "" || problems != nil {
			t.Errorf("%v (-want +got)\n%s", problems, diff)
		}
	})
}

func (e Entry) line() string { return string(e.append(nil)) }
