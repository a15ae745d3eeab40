// SPDX-License-Identifier: Apache-2.0

package component

import (
	"net/netip"

	"muster.dev/muster/internal/certificates/authority"
)

// CredentialIssuer is the certificate of the server of issuers' documents, which serves every cluster of the account.
const CredentialIssuer = "issuer"

// audience is the audience of a service account token that names no other: the API server, by the name that EKS has it
// go by. It is not the issuer, which is another one for each cluster: the issuer and its keys decide whether a token of
// one cluster is good at another.
const audience = "https://kubernetes.default.svc"

// Issuer describes the issuer of the tokens of a cluster's service accounts (package issuer).
type Issuer struct {
	// URL is the claim iss of each token, Keys where the public keys are.
	URL, Keys string
	// ID is the random end of the URL, which no other cluster has or had.
	ID string
}

// Issuers are where the documents of the issuers of an account's clusters are served.
type Issuers struct {
	// Address and Port are listened on.
	Address netip.Addr
	Port    int
	// Host is the name or the address in the URLs of issuers, without a port.
	Host string
	// Loopback is listened on, too, if Host is this host's own name: where that led when it was chosen. It is the zero
	// Addr otherwise.
	Loopback netip.Addr
}

// credential is the certificate for the server. The list is empty before the account has an address, as in a dry run.
func (i Issuers) credential() []authority.Credential {
	if !i.Address.IsValid() {
		return nil
	}
	return []authority.Credential{{
		Name: CredentialIssuer, Authority: authority.Account, CommonName: "muster:issuer", DNSNames: i.names(), Addresses: []netip.Addr{i.Address},
	}}
}

// forPods is the certificate for the pods of a cluster, which trust the cluster's authority as every pod of Kubernetes
// does. The list is empty for issuers that pods do not find by a name.
func (i Issuers) forPods() []authority.Credential {
	names := i.names()
	if len(names) == 0 {
		return nil
	}
	return []authority.Credential{{Name: CredentialIssuer, Authority: authority.Cluster, CommonName: "muster:issuer", DNSNames: names}}
}

// names are the DNS names that issuers are known by, if they are known by one.
func (i Issuers) names() []string {
	if _, err := netip.ParseAddr(i.Host); err == nil || i.Host == "" {
		return nil
	}
	return []string{i.Host}
}
