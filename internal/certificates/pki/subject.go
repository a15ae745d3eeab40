// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
)

// subject is all that a subject may hold.
type subject struct {
	commonName   string
	organization []string
	other        []attributeText // attributes that mean nothing to Kubernetes, in the order of the request
}

type attributeText struct {
	name string // as people write it
	text string
}

type attributeTypeAndValue struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// Attributes that may stand in a subject, beside the two that make the user and its groups. Everything else is unknown,
// among it the user ID that newer API servers read from certificates (k8s.io/apiserver,
// AllowParsingUserUIDFromCertAuth).
func otherAttributes() map[string]string {
	return map[string]string{"2.5.4.6": "C", "2.5.4.8": "ST", "2.5.4.7": "L", "2.5.4.11": "OU"}
}

const (
	attributeCommonName   = "2.5.4.3"
	attributeOrganization = "2.5.4.10"
)

// readSubject reads the raw RDNSequence (RFC 5280, 4.1.2.4). There must be one common name: a second one is a classic
// trick, since crypto/x509 keeps the last name and other programs keep the first.
func readSubject(der []byte) (s subject, err error) {
	var rdns []asn1.RawValue
	if err := unmarshal(der, &rdns, ""); err != nil {
		return s, fmt.Errorf("reading the subject: %w", err)
	}
	names := 0
	others := otherAttributes()
	for _, rdn := range rdns {
		var set []attributeTypeAndValue
		if err := unmarshal(rdn.FullBytes, &set, "set"); err != nil {
			return s, fmt.Errorf("reading the subject: %w", err)
		}
		for _, a := range set {
			oid := a.Type.String()
			value, err := readText(a.Value)
			if err != nil {
				return s, fmt.Errorf("reading subject attribute %s: %w", oid, err)
			}
			other, known := others[oid]
			switch {
			case oid == attributeCommonName:
				s.commonName = value
				names++
			case oid == attributeOrganization && value == "":
				return s, errors.New("an organization is empty")
			case oid == attributeOrganization:
				s.organization = append(s.organization, value)
			case known:
				s.other = append(s.other, attributeText{other, value})
			default:
				return s, fmt.Errorf("the subject has attribute %s, which is not known here", oid)
			}
		}
	}
	switch {
	case names != 1:
		return s, fmt.Errorf("the subject has %d common names; it must be exactly one", names)
	case s.commonName == "":
		return s, errors.New("the common name is empty")
	}
	return s, nil
}

// readText accepts the three string types that are plain text byte for byte, and of them printable ASCII: names of
// nodes have nothing else, and an invisible character would make two names look the same in a log.
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

// encode writes the subject anew, an attribute at a time: pkix.Name would sort the organizations.
func (s subject) encode() ([]byte, error) {
	var seq pkix.RDNSequence
	add := func(text string, last int) {
		seq = append(seq, pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier{2, 5, 4, last}, Value: text}})
	}
	for _, a := range s.other {
		add(a.text, map[string]int{"C": 6, "ST": 8, "L": 7, "OU": 11}[a.name])
	}
	for _, o := range s.organization {
		add(o, 10)
	}
	add(s.commonName, 3)
	der, err := asn1.Marshal(seq)
	if err != nil {
		return nil, fmt.Errorf("encoding the subject: %w", err)
	}
	return der, nil
}

// equal reports whether two subjects say the same.
func (s subject) equal(t subject) bool {
	return s.commonName == t.commonName && slices.Equal(s.organization, t.organization) && slices.Equal(s.other, t.other)
}
