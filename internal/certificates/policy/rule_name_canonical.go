// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checkNamesCanonical refuses every name that has no canonical form: lower case, without the dot at the end, with
// Punycode only for what IDNA writes so. The other rules compare that form, so KUBERNETES is as reserved as kubernetes.
// In the certificate stands what was asked for, and verifiers compare without regard to case. A dot at the end verifies
// nowhere, so a certificate would be worth nothing; a kubelet whose host has such a name is left waiting, which costs
// less than the denials that it would ask for.
func checkNamesCanonical(e evaluation) outcome {
	names := e.request.CSR.DNSNames()
	if len(names) == 0 {
		return notApplicable("no DNS names")
	}
	for _, n := range names {
		if why := notCanonical(canonicalName(n)); why != "" {
			return refuse("write it as DNS has it, without wildcard", "the DNS name %q %s", n, why)
		}
	}
	for _, n := range names {
		switch {
		case !strings.HasSuffix(n, "."):
		case e.profile.Node:
			return wait("give the host a name without a dot at the end", "the DNS name %q ends with a dot", n)
		default:
			return refuse("write it without the dot at the end", "the DNS name %q ends with a dot", n)
		}
	}
	return pass("%q", names)
}

// canonicalName is the form in which names are compared.
func canonicalName(n string) string { return strings.ToLower(strings.TrimSuffix(n, ".")) }

// canonicalNames are the canonical forms, each once.
func canonicalNames(names []string) []string {
	var all []string
	for _, n := range names {
		if c := canonicalName(n); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// notCanonical says why a name cannot be one.
func notCanonical(n string) string {
	switch {
	case n == "":
		return "is empty"
	case strings.Contains(n, "*"):
		return "is a wildcard"
	case len(validation.IsDNS1123Subdomain(n)) > 0:
		return "is not a DNS name"
	}
	labels := strings.Split(n, ".")
	for _, l := range labels {
		switch {
		case len(l) > 63:
			return "has a label of more than 63 characters"
		case strings.HasPrefix(l, "xn--") && !roundTrips(l):
			return "has a label that begins with xn-- and is not what IDNA makes of any name"
		}
	}
	if endsInNumber(labels[len(labels)-1]) {
		return "ends with a number, like an address"
	}
	return ""
}

// roundTrips reports whether a label in Punycode is the one way to write what it stands for.
func roundTrips(label string) bool {
	text, err := idna.Lookup.ToUnicode(label)
	if err != nil {
		return false
	}
	again, err := idna.Lookup.ToASCII(text)
	return err == nil && again == label
}

// endsInNumber: a name that ends in a number is an IPv4 address to URL parsers (WHATWG URL, 3.5), 0x7f included.
func endsInNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
