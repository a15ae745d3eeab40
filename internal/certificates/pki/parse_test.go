// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

const node = "ip-192-168-64-11.ec2.internal"

func TestParseReadsWhatAKubeletSends(t *testing.T) {
	r, err := pki.Parse(pkitest.Kubelet(t, node, node, "192.168.64.11", "fd00::11"))
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		CN, Key string
		O, DNS  []string
		IPs     []netip.Addr
	}
	got := seen{r.CommonName(), r.Key().String(), r.Organization(), r.DNSNames(), r.Addresses()}
	want := seen{
		"system:node:" + node, "ECDSA 256",
		[]string{"system:nodes"},
		[]string{node},
		[]netip.Addr{netip.MustParseAddr("192.168.64.11"), netip.MustParseAddr("fd00::11")},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseCannotBeChangedThroughWhatItReturns(t *testing.T) {
	r, err := pki.Parse(pkitest.Kubelet(t, node, node, "192.168.64.11"))
	if err != nil {
		t.Fatal(err)
	}
	r.DNSNames()[0], r.Organization()[0], r.Addresses()[0] = "x", "x", netip.Addr{}
	if r.DNSNames()[0] != node || r.Organization()[0] != "system:nodes" || !r.Addresses()[0].IsValid() {
		t.Error("a caller changed the request")
	}
}

func TestParseUnmapsAddresses(t *testing.T) {
	san := pkitest.SAN(t, pkitest.GeneralName{Tag: 7, Value: netip.MustParseAddr("::ffff:10.100.0.1").AsSlice()})
	template := pkitest.Template(node)
	template.ExtraExtensions = []pkix.Extension{san}
	r, err := pki.Parse(pkitest.Encode(t, pkitest.Key(t), template))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Addresses(); len(got) != 1 || got[0] != netip.MustParseAddr("10.100.0.1") {
		t.Errorf("got %v", got)
	}
}

func TestParsePEM(t *testing.T) {
	good := string(pkitest.Kubelet(t, node))
	for _, tc := range []struct{ name, in, want string }{
		{"white space around the block is allowed", "\n" + good + " \n\t\n", ""},
		{"nothing", "", "does not start with"},
		{"text before the block", "hello\n" + good, "does not start with"},
		{"text after the block", good + "hello", "5 bytes follow"},
		{"a second request after the first", good + good, "2 PEM blocks"},
		{"another block after the request, as attestation data rides", good + "-----BEGIN ATTESTATION DATA-----\nAA==\n-----END ATTESTATION DATA-----\n", "2 PEM blocks"},
		{"a broken block before a good one, which encoding/pem skips", "-----BEGIN CERTIFICATE REQUEST-----\n%%\n" + good, "2 PEM blocks"},
		{"headers", strings.Replace(good, "REQUEST-----\n", "REQUEST-----\nA: b\n\n", 1), "headers"},
		{"a new-style block name", strings.ReplaceAll(good, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"), "does not start with"},
		{"a begin line only", "-----BEGIN CERTIFICATE REQUEST-----\n", "cannot be decoded"},
		{"an end line of another type", strings.Replace(good, "END CERTIFICATE REQUEST", "END CERTIFICATE", 1), "cannot be decoded"},
		{"too large", good + strings.Repeat(" ", pki.MaxRequestSize), "the most that are read"},
		{"an empty block", "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n", "reading the request"},
	} {
		t.Run(tc.name, func(t *testing.T) { parseMust(t, []byte(tc.in), tc.want) })
	}
}

func TestParseDER(t *testing.T) {
	key := pkitest.Key(t)
	der, err := x509.CreateCertificateRequest(rand.Reader, pkitest.Template(node), key)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Clone(der)
	forged[len(forged)-1] ^= 1
	renamed := bytes.Replace(der, []byte("64-11"), []byte("64-12"), 1)
	parseMust(t, pkitest.PEM(append(bytes.Clone(der), 0)), "trailing data")
	parseMust(t, pkitest.PEM(der[:len(der)-1]), "reading the request")
	parseMust(t, pkitest.PEM(forged), "own signature is wrong")
	parseMust(t, pkitest.PEM(renamed), "own signature is wrong")
	var whole asn1.RawValue
	if _, err := asn1.Unmarshal(der, &whole); err != nil {
		t.Fatal(err)
	}
	length := binary.BigEndian.AppendUint32([]byte{0x30, 0x84}, uint32(len(whole.Bytes)))
	parseMust(t, pkitest.PEM(slices.Concat([]byte{0x30, 0x80}, whole.Bytes, []byte{0, 0})), "reading the request") // BER: of no given length
	parseMust(t, pkitest.PEM(append(length, whole.Bytes...)), "reading the request")                               // BER: zeros before the length
}

// A signature has one encoding as well, or one request would have several forms.
func TestParseSignatureWithMoreBehind(t *testing.T) {
	block, _ := pem.Decode(pkitest.Kubelet(t, node))
	var r struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(block.Bytes, &r); err != nil {
		t.Fatal(err)
	}
	parseMust(t, pkitest.PEM(pkitest.Marshal(t, r)), "")
	r.Signature.Bytes = append(r.Signature.Bytes, 0)
	r.Signature.BitLength += 8
	parseMust(t, pkitest.PEM(pkitest.Marshal(t, r)), "own signature is wrong")
}

func TestParseSubject(t *testing.T) {
	for _, tc := range []struct {
		name    string
		subject pkix.RDNSequence
		want    string
	}{
		{"one name, one organization", rdns(cn("system:node:a"), o("system:nodes")), ""},
		{"both in one set", pkix.RDNSequence{{cn("system:node:a"), o("system:nodes")}}, ""},
		{"two common names", rdns(cn("system:node:a"), cn("system:node:b"), o("system:nodes")), "2 common names"},
		{"two common names in one set", pkix.RDNSequence{{cn("system:node:a"), cn("system:node:b")}, {o("system:nodes")}}, "2 common names"},
		{"the same common name twice", rdns(cn("system:node:a"), cn("system:node:a")), "2 common names"},
		{"no common name", rdns(o("system:nodes")), "0 common names"},
		{"no subject", rdns(), "0 common names"},
		{"an empty common name", rdns(cn("")), "common name is empty"},
		{"what people's tools add", rdns(attr("NZ", 2, 5, 4, 6), attr("W", 2, 5, 4, 8), attr("W", 2, 5, 4, 7), o("a"), attr("ops", 2, 5, 4, 11), cn("vip")), ""},
		{"an empty organization", rdns(cn("system:node:a"), o("")), "organization is empty"},
		{"a street", rdns(cn("system:node:a"), attr("1", 2, 5, 4, 9)), "attribute 2.5.4.9"},
		{"the user id of Kubernetes", rdns(cn("system:node:a"), attr("1", 1, 3, 6, 1, 4, 1, 57683, 2)), "attribute 1.3.6.1.4.1.57683.2"},
		{"a serial number", rdns(cn("system:node:a"), attr("1", 2, 5, 4, 5)), "attribute 2.5.4.5"},
		{"an e-mail address", rdns(cn("system:node:a"), attr("a@b", 1, 2, 840, 113549, 1, 9, 1)), "attribute 1.2.840.113549.1.9.1"},
		{"a user id, which newer API servers read", rdns(cn("system:node:a"), attr("1", 0, 9, 2342, 19200300, 100, 1, 1)), "attribute 0.9.2342"},
		{"a NUL in the name", rdns(cn("system:node:a\x00b")), "byte 0x00"},
		{"a line break in the name", rdns(cn("system:node:a\nb")), "byte 0x0a"},
		{"a letter that only looks like an a", rdns(cn("system:node:\u0430")), "only printable ASCII"},
		{"a number instead of a name", rdns(pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: 5}), "reading"},
		{"an old string type", rdns(pkix.AttributeTypeAndValue{
			Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: asn1.RawValue{Tag: asn1.TagT61String, Bytes: []byte("system:node:a")},
		}), "tag 20"},
		{"two bytes for each letter", rdns(pkix.AttributeTypeAndValue{
			Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: asn1.RawValue{Tag: asn1.TagBMPString, Bytes: []byte("\x00a")},
		}), "tag 30"},
		{"a terminal's escape in the organization", rdns(cn("system:node:a"), o("system:nodes\x1b[2J")), "byte 0x1b"},
	} {
		t.Run(tc.name, func(t *testing.T) { parseMust(t, pkitest.Raw(t, tc.subject), tc.want) })
	}
}

func TestParseAttributes(t *testing.T) {
	type attribute struct {
		Type   asn1.ObjectIdentifier
		Values []any `asn1:"set"`
	}
	request := asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}
	san := []pkix.Extension{pkitest.SAN(t, pkitest.GeneralName{Tag: 2, Value: []byte("a")})}
	other := []pkix.Extension{pkitest.SAN(t, pkitest.GeneralName{Tag: 2, Value: []byte("b")})}
	usage := []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 15}, Value: []byte{3, 2, 5, 160}}}
	subject := rdns(cn("system:node:a"), o("system:nodes"))
	for _, tc := range []struct {
		name  string
		attrs []any
		want  string
	}{
		{"none", nil, ""},
		{"one extension request", []any{attribute{request, []any{san}}}, ""},
		{"two extension requests", []any{attribute{request, []any{san}}, attribute{request, []any{other}}}, ""},
		{"one request with two values", []any{attribute{request, []any{san, other}}}, "more than once"},
		{"two SAN extensions", []any{attribute{request, []any{append(san, other...)}}}, ""},
		{"a challenge password", []any{attribute{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 7}, []any{"secret"}}}, "attribute 1.2.840.113549.1.9.7"},
		{"a key usage that would be dropped", []any{attribute{request, []any{usage}}}, "extension 2.5.29.15"},
		{"a key usage beside names", []any{attribute{request, []any{append(usage, san...)}}}, "extension 2.5.29.15"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := pkitest.Raw(t, subject, tc.attrs...)
			if strings.HasPrefix(tc.name, "two ") { // crypto/x509 or this package: one of them must say no
				if r, err := pki.Parse(data); err == nil {
					t.Fatalf("accepted with names %v", r.DNSNames())
				}
				return
			}
			parseMust(t, data, tc.want)
		})
	}
}

func TestParseNames(t *testing.T) {
	dns := func(s string) pkitest.GeneralName { return pkitest.GeneralName{Tag: 2, Value: []byte(s)} }
	ip := func(b ...byte) pkitest.GeneralName { return pkitest.GeneralName{Tag: 7, Value: b} }
	for _, tc := range []struct {
		name  string
		names []pkitest.GeneralName
		want  string
	}{
		{"a name and an address", []pkitest.GeneralName{dns("a"), ip(10, 0, 0, 1)}, ""},
		{"an empty list", nil, "empty"},
		{"the same name twice", []pkitest.GeneralName{dns("a"), dns("a")}, "duplicate"},
		{"the same address twice, once mapped", []pkitest.GeneralName{ip(10, 0, 0, 1), ip(netip.MustParseAddr("::ffff:10.0.0.1").AsSlice()...)}, "duplicate"},
		{"an address with five bytes", []pkitest.GeneralName{ip(1, 2, 3, 4, 5)}, "5 bytes"},
		{"an address with a mask, as name constraints have", []pkitest.GeneralName{ip(10, 0, 0, 0, 255, 0, 0, 0)}, "8 bytes"},
		{"an address of six bytes as if it were one of IPv6", []pkitest.GeneralName{ip(0, 0, 10, 0, 0, 1)}, "6 bytes"},
		{"no address", []pkitest.GeneralName{ip()}, "0 bytes"},
		{"X.400 address", []pkitest.GeneralName{{Tag: 3}}, "X.400 address"},
		{"EDI party name", []pkitest.GeneralName{{Tag: 5}}, "EDI party name"},
		{"other name", []pkitest.GeneralName{{Tag: 0, Value: nil}}, "other name"},
		{"e-mail", []pkitest.GeneralName{{Tag: 1, Value: []byte("a@b")}}, "email address"},
		{"directory name", []pkitest.GeneralName{{Tag: 4}}, "directory name"},
		{"URI", []pkitest.GeneralName{{Tag: 6, Value: []byte("https://a")}}, "URI"},
		{"registered id", []pkitest.GeneralName{{Tag: 8, Value: []byte{42}}}, "registered ID"},
		{"a type that does not exist", []pkitest.GeneralName{{Tag: 9}}, "a name of type 9;"},
		{"a good name and a URI", []pkitest.GeneralName{dns("a"), {Tag: 6, Value: []byte("https://a")}}, "URI"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			template := pkitest.Template("a")
			template.ExtraExtensions = []pkix.Extension{pkitest.SAN(t, tc.names...)}
			data := pkitest.Encode(t, pkitest.Key(t), template)
			_, err := pki.Parse(data)
			if (err == nil) != (tc.want == "") {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			// crypto/x509 sees some of these first, in its own words.
			if err != nil && !strings.Contains(err.Error(), tc.want) && !strings.Contains(err.Error(), "x509") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestParseRefusesURIsThatX509Knows(t *testing.T) {
	template := pkitest.Template("a", "a")
	template.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}}
	parseMust(t, pkitest.Encode(t, pkitest.Key(t), template), "URI")
	template = pkitest.Template("a", "a")
	template.EmailAddresses = []string{"root@a"}
	parseMust(t, pkitest.Encode(t, pkitest.Key(t), template), "email address")
}

func parseMust(t *testing.T, data []byte, want string) {
	t.Helper()
	_, err := pki.Parse(data)
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Errorf("accepted; want an error with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("got %q, want %q in it", err, want)
	}
}

func rdns(attrs ...pkix.AttributeTypeAndValue) pkix.RDNSequence {
	seq := pkix.RDNSequence{}
	for _, a := range attrs {
		seq = append(seq, pkix.RelativeDistinguishedNameSET{a})
	}
	return seq
}

func cn(v string) pkix.AttributeTypeAndValue { return attr(v, 2, 5, 4, 3) }
func o(v string) pkix.AttributeTypeAndValue  { return attr(v, 2, 5, 4, 10) }

func attr(v string, oid ...int) pkix.AttributeTypeAndValue {
	return pkix.AttributeTypeAndValue{Type: oid, Value: v}
}
