// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/asn1"
	"errors"
	"fmt"
)

type attributeTypeAndValue struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// readSubject reads the raw RDNSequence (RFC 5280, 4.1.2.4). It knows the common name, of which there must be one, and the
// organization. A second common name is the classic trick: crypto/x509 keeps the last, other programs the first.
func readSubject(der []byte) (commonName string, organization []string, err error) {
	var rdns []asn1.RawValue
	if err := unmarshal(der, &rdns, ""); err != nil {
		return "", nil, fmt.Errorf("reading the subject: %w", err)
	}
	names := 0
	for _, rdn := range rdns {
		var set []attributeTypeAndValue
		if err := unmarshal(rdn.FullBytes, &set, "set"); err != nil {
			return "", nil, fmt.Errorf("reading the subject: %w", err)
		}
		for _, a := range set {
			value, err := readText(a.Value)
			if err != nil {
				return "", nil, fmt.Errorf("reading subject attribute %s: %w", a.Type, err)
			}
			switch {
			case a.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}):
				commonName = value
				names++
			case a.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 10}):
				organization = append(organization, value)
			default:
				return "", nil, fmt.Errorf("the subject has attribute %s; only a common name and organizations may stand in it", a.Type)
			}
		}
	}
	switch {
	case names != 1:
		return "", nil, fmt.Errorf("the subject has %d common names; it must be exactly one", names)
	case commonName == "":
		return "", nil, errors.New("the common name is empty")
	}
	return commonName, organization, nil
}

// readText accepts the three string types that are plain text byte for byte, and of them printable ASCII: names of nodes have
// nothing else, and an invisible character would make two names look the same in a log.
func readText(v asn1.RawValue) (string, error) {
	if v.Class != asn1.ClassUniversal || v.IsCompound {
		return "", errors.New("it is not a string")
	}
	switch v.Tag {
	case asn1.TagPrintableString, asn1.TagUTF8String, asn1.TagIA5String:
	default:
		return "", fmt.Errorf("its type has tag %d; use UTF8String or PrintableString", v.Tag)
	}
	for _, c := range v.Bytes {
		if c < 0x20 || c > 0x7e {
			return "", fmt.Errorf("it holds the byte %#02x; only printable ASCII may stand in it", c)
		}
	}
	return string(v.Bytes), nil
}
