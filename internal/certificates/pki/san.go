// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"encoding/asn1"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
)

// Tags of GeneralName, RFC 5280, 4.2.1.6.
const (
	tagDNSName   = 2
	tagIPAddress = 7
)

func nameTypes() map[int]string {
	return map[int]string{
		0: "other name", 1: "email address", 3: "X.400 address", 4: "directory name", 5: "EDI party name", 6: "URI", 8: "registered ID",
	}
}

// readSAN reads the raw list of names. Types other than DNS and IP are refused here, where they can still be seen.
// The same name twice is refused too: no kubelet does it, and a list without duplicates is simpler to reason about.
func readSAN(der []byte) (names []string, addresses []netip.Addr, err error) {
	var list []asn1.RawValue
	if err := unmarshal(der, &list, ""); err != nil {
		return nil, nil, fmt.Errorf("reading the subject alternative names: %w", err)
	}
	if len(list) == 0 {
		return nil, nil, errors.New("the list of subject alternative names is empty; leave it out instead")
	}
	seen := map[string]bool{}
	for _, v := range list {
		if v.Class != asn1.ClassContextSpecific {
			return nil, nil, errors.New("the subject alternative names hold an entry that is not a name")
		}
		var key string
		switch {
		case v.Tag == tagDNSName && !v.IsCompound:
			key = string(v.Bytes)
			names = append(names, key)
		case v.Tag == tagIPAddress && !v.IsCompound:
			a, ok := netip.AddrFromSlice(v.Bytes)
			if !ok {
				return nil, nil, fmt.Errorf("an IP address has %d bytes; it must be 4 or 16", len(v.Bytes))
			}
			a = a.Unmap()
			key = a.String()
			addresses = append(addresses, a)
		default:
			kind, ok := nameTypes()[v.Tag]
			if !ok {
				kind = strconv.Itoa(v.Tag)
			}
			return nil, nil, fmt.Errorf("the subject alternative names hold a name of type %s; only DNS names and IP addresses may be asked for", kind)
		}
		if seen[key] {
			return nil, nil, fmt.Errorf("duplicate subject alternative name %q", key)
		}
		seen[key] = true
	}
	return names, addresses, nil
}
