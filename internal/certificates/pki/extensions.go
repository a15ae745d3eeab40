// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
)

// certificationRequestInfo is RFC 2986, 4.1, with the attributes left raw: crypto/x509 drops those it does not know.
type certificationRequestInfo struct {
	Version    int
	Subject    asn1.RawValue
	PublicKey  asn1.RawValue
	Attributes []asn1.RawValue `asn1:"tag:0,set"`
}

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

// readAttributes returns the value of the subject alternative name extension, nil if there is none, and refuses every
// other attribute and extension: a certificate here is built from the profile, so they would be dropped silently.
func readAttributes(tbs []byte) ([]byte, error) {
	var info certificationRequestInfo
	if err := unmarshal(tbs, &info, ""); err != nil {
		return nil, fmt.Errorf("reading the request's attributes: %w", err)
	}
	var extensions []pkix.Extension
	for i, raw := range info.Attributes {
		var a attribute
		if err := unmarshal(raw.FullBytes, &a, ""); err != nil {
			return nil, fmt.Errorf("reading the request's attributes: %w", err)
		}
		switch {
		case !a.Type.Equal(asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 14}): // extensionRequest, RFC 2985, 5.4.2
			return nil, fmt.Errorf("the request has attribute %s, which no certificate here carries", a.Type)
		case i > 0, len(a.Values) != 1:
			return nil, fmt.Errorf("the request asks for extensions more than once")
		}
		if err := unmarshal(a.Values[0].FullBytes, &extensions, ""); err != nil {
			return nil, fmt.Errorf("reading the requested extensions: %w", err)
		}
	}
	var san []byte
	for _, e := range extensions {
		if !e.Id.Equal(oidSubjectAltName) {
			return nil, fmt.Errorf("the request asks for extension %s; only subject alternative names may be asked for", e.Id)
		}
		if san != nil {
			return nil, fmt.Errorf("the request has two lists of subject alternative names")
		}
		san = e.Value
	}
	return san, nil
}
