// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/x509"
	"net/netip"
	"slices"
	"time"
)

// The names of the authorities. Each cluster has the first three and kubelets' (see [Store.Kubelets]), the account the
// others.
const (
	Cluster        = "cluster"
	Etcd           = "etcd"
	FrontProxy     = "front-proxy"
	Account        = "account"         // the account's servers for all its clusters: STS and IAM
	Management     = "management"      // the management plane and its clients
	ManagementEtcd = "management-etcd" // of the management plane
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	// credentialLifetime is a compromise: long enough for a service that was stopped over a holiday, short for a lost
	// key.
	credentialLifetime = 90 * 24 * time.Hour
	// backdate allows for clocks that differ, as upstream's signer does.
	backdate = 5 * time.Minute
	// A credential is renewed when a third of its life is left: a month, here.
	renewalShare = 3
)

// Credential is a certificate that a component or an administrator must have.
type Credential struct {
	// Name of the file, without its ending.
	Name string
	// Path of the file where it is another's than the store's: a cluster keeps what the account issued to it.
	Path string
	// Authority that issues it.
	Authority string
	// CommonName and Organizations are the user and groups that it stands for.
	CommonName    string
	Organizations []string
	// DNSNames and Addresses make it a serving certificate.
	DNSNames  []string
	Addresses []netip.Addr
	// Client makes it a client certificate.
	Client bool
}

func (c Credential) usages() []x509.ExtKeyUsage {
	var usages []x509.ExtKeyUsage
	if c.Client {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	if len(c.DNSNames)+len(c.Addresses) > 0 {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	return usages
}

// fits reports whether a certificate still is what the credential asks for.
func (c Credential) fits(cert *x509.Certificate) bool {
	addresses := make([]netip.Addr, 0, len(cert.IPAddresses))
	for _, ip := range cert.IPAddresses {
		addr, _ := netip.AddrFromSlice(ip)
		addresses = append(addresses, addr.Unmap())
	}
	// A certificate holds organizations as a set, in an order of its own.
	return cert.Subject.CommonName == c.CommonName &&
		slices.Equal(slices.Sorted(slices.Values(cert.Subject.Organization)), slices.Sorted(slices.Values(c.Organizations))) &&
		slices.Equal(cert.DNSNames, c.DNSNames) &&
		slices.Equal(addresses, c.Addresses) &&
		slices.Equal(cert.ExtKeyUsage, c.usages())
}

// due is when a certificate is renewed.
func due(cert *x509.Certificate) time.Time {
	return cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / renewalShare)
}

// ends reports whether a certificate is due, and another one would last longer: no certificate outlives its authority.
func ends(cert, ca *x509.Certificate, now time.Time) bool {
	return !now.Before(due(cert)) && cert.NotAfter.Before(ca.NotAfter)
}

// early reports whether a certificate is not valid yet: it was issued while the clock was ahead, and that was set back.
// Under an authority that is not valid yet either, another certificate would be early as well.
func early(cert *x509.Certificate, now time.Time) bool { return now.Before(cert.NotBefore) }
