// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkNamesCanonical refuses every name that is not written in the one way there is. TLS clients compare without regard to
// case and some drop a trailing dot, so KUBERNETES and kubernetes. would pass a list of forbidden names and then serve as
// kubernetes. Kubelets write names in lower case.
func checkNamesCanonical(e evaluation) outcome {
	names := e.request.CSR.DNSNames()
	if len(names) == 0 {
		return notApplicable("no DNS names")
	}
	for _, n := range names {
		if why := notCanonical(n); why != "" {
			return refuse("write it in lower case, without wildcard or trailing dot", "the DNS name %q %s", n, why)
		}
	}
	return pass("%q", names)
}

func notCanonical(n string) string {
	switch {
	case n == "":
		return "is empty"
	case n != strings.ToLower(n):
		return "has upper case letters"
	case strings.HasSuffix(n, "."):
		return "ends with a dot"
	case strings.Contains(n, "*"):
		return "is a wildcard"
	case len(validation.IsDNS1123Subdomain(n)) > 0:
		return "is not a DNS name"
	}
	labels := strings.Split(n, ".")
	for _, l := range labels {
		if len(l) > 63 {
			return "has a label of more than 63 characters"
		}
		if strings.HasPrefix(l, "xn--") {
			return "has an internationalized label, which people read as something else"
		}
	}
	if endsInNumber(labels[len(labels)-1]) {
		return "ends with a number, like an address"
	}
	return ""
}

// endsInNumber: what ends in a number is an IPv4 address to URL parsers (WHATWG URL, 3.5), 0x7f included.
func endsInNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
