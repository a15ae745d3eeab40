// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

const (
	// DefaultPort is the port of https, which a URL need not name.
	DefaultPort = 443

	prefix        = "/id/"
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/keys"
	idBytes       = 16
	maxHost       = 253 // RFC 1035, section 2.3.4, as text
)

// Endpoint is where the issuers of an account's clusters answer.
type Endpoint struct {
	// Host is an address or a DNS name, with a port unless that is 443: what URLs begin with.
	Host string
	// Port is what the account's address is listened on. It is not Host's if somebody else answers there and passes
	// requests on.
	Port int
	// Loopback is the loopback address that Host led to on this host when it was chosen, if Host is the host's own
	// name; it is listened on, too.
	Loopback netip.Addr
}

// At is the endpoint at an address itself.
func At(address netip.Addr, port int) Endpoint {
	if port == DefaultPort {
		return Endpoint{Host: address.String(), Port: port}
	}
	return Endpoint{Host: netip.AddrPortFrom(address, uint16(port)).String(), Port: port} //nolint:gosec // G115: checked where it is read or chosen
}

// Name is the host without a port.
func (e Endpoint) Name() string {
	name, _, _ := strings.Cut(e.Host, ":")
	return name
}

// InVPC is the name by which pods and machines of VPCs find the issuers; empty if the host is an address, which is the
// host's own, or has a port, at which nothing in a VPC listens.
func (e Endpoint) InVPC() string {
	if _, err := netip.ParseAddr(e.Host); err == nil || strings.Contains(e.Host, ":") {
		return ""
	}
	return e.Host
}

// Issuer is the URL of one cluster's issuer.
type Issuer struct {
	host string
	// ID is the random part, 32 upper-case hexadecimal digits, as in EKS.
	ID string
}

// New makes the issuer of a new cluster.
func New(at Endpoint, random io.Reader) (Issuer, error) {
	id := make([]byte, idBytes)
	if _, err := io.ReadFull(random, id); err != nil {
		return Issuer{}, fmt.Errorf("drawing the issuer's id: %w", err)
	}
	return Issuer{at.Host, strings.ToUpper(hex.EncodeToString(id))}, nil
}

// String is the URL: the claim iss of every token.
func (i Issuer) String() string { return "https://" + i.host + prefix + i.ID }

// Keys is the URL of the keys.
func (i Issuer) Keys() string { return i.String() + keysPath }

// Parse reads the URL of an issuer. There is one way to write each: verifiers compare issuers byte by byte.
func Parse(text string) (Issuer, error) {
	rest, ok := strings.CutPrefix(text, "https://")
	host, id, found := strings.Cut(rest, prefix)
	if !ok || !found || !validID(id) {
		return Issuer{}, fmt.Errorf("%q is not https://HOST%sID, the ID 32 upper-case hexadecimal digits", text, prefix)
	}
	if err := CheckHost(host); err != nil {
		return Issuer{}, err
	}
	return Issuer{host, id}, nil
}

func validID(id string) bool {
	return len(id) == 2*idBytes && strings.Trim(id, "0123456789ABCDEF") == ""
}

var errHost = errors.New("must be a lower-case DNS name or an IPv4 address, with :PORT if it is not 443")

// CheckHost reports what is wrong with the host of an issuer's URL.
func CheckHost(host string) error {
	name, port, hasPort := strings.Cut(host, ":")
	if hasPort {
		number, err := strconv.Atoi(port)
		if err != nil || number < 1 || number > 65535 || number == DefaultPort || strconv.Itoa(number) != port {
			return fmt.Errorf("issuer host %q %w", host, errHost)
		}
	}
	if !validName(name) {
		return fmt.Errorf("issuer host %q %w", host, errHost)
	}
	if parsed, err := url.Parse("https://" + host); err != nil || parsed.Host != host {
		return fmt.Errorf("issuer host %q %w", host, errHost)
	}
	return nil
}

// validName reports whether a name is an IPv4 address or a DNS name in lower case. A last label of digits alone makes
// resolvers take a name for an address, as 127.1, in ways that differ (WHATWG URL, section 3.5).
func validName(name string) bool {
	if address, err := netip.ParseAddr(name); err == nil {
		return address.Is4() && address.String() == name
	}
	if len(name) > maxHost {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}
