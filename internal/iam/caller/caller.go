// SPDX-License-Identifier: Apache-2.0

// Package caller names the callers of the account in client certificates, and reads the names: the authenticator of one
// cluster, or instance metadata, which gives machines their credentials. The name in the certificate counts; names that
// a caller writes into a request do not.
package caller

import (
	"crypto/x509"
	"fmt"
	"strings"
)

// ServerName is what the account's certificate is for, wherever it answers.
const ServerName = "account.muster.internal"

// The common names of callers. That of an authenticator ends in the id of its cluster, whose name is the organization,
// behind the prefix.
const (
	authenticator = "muster:authenticator:"
	metadata      = "muster:metadata"
	clusterPrefix = "muster:cluster:"
)

const (
	maxCluster = 100 // bytes of a cluster's name
	maxID      = 43  // bytes of a cluster's id: a common name has 64 in all (RFC 5280, ub-common-name)
)

// Caller is one of them. The zero value is none.
type Caller struct {
	// Cluster whose authenticator it is; empty for any other.
	Cluster string
	// ID is what that cluster and none before or after it of the same name has: that of its issuer, capital letters and
	// digits.
	ID string
	// Metadata reports that it may have the credentials of instances.
	Metadata bool
}

// Authenticator is the authenticator of the cluster with a name and an id.
func Authenticator(cluster, id string) Caller { return Caller{Cluster: cluster, ID: id} }

// Metadata is instance metadata, and the controllers that look after machines.
func Metadata() Caller { return Caller{Metadata: true} }

// Subject is how a certificate names the caller.
func (c Caller) Subject() (commonName string, organizations []string) {
	if c.Metadata {
		return metadata, nil
	}
	return authenticator + c.ID, []string{clusterPrefix + c.Cluster}
}

// String names the caller in errors and logs.
func (c Caller) String() string {
	switch {
	case c.Metadata:
		return "instance metadata"
	case c.Cluster != "":
		return "the authenticator of cluster " + c.Cluster
	}
	return "an unknown caller"
}

// Of reads a certificate whose signature and use were verified. A certificate that names two callers, or no caller, is
// an error.
func Of(certificate *x509.Certificate) (Caller, error) {
	name, organizations := certificate.Subject.CommonName, certificate.Subject.Organization
	if name == metadata && len(organizations) == 0 {
		return Metadata(), nil
	}
	if id, ok := strings.CutPrefix(name, authenticator); ok && isID(id) && len(organizations) == 1 {
		if cluster, ok := strings.CutPrefix(organizations[0], clusterPrefix); ok && isCluster(cluster) {
			return Authenticator(cluster, id), nil
		}
	}
	return Caller{}, fmt.Errorf("the client certificate is of %.200q, which is not a caller of the account: use the credential that was made for it", certificate.Subject.String())
}

// isCluster reports whether a text can be the name of a cluster, by EKS's rules.
func isCluster(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alphanumeric && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= maxCluster
}

// isID reports whether a text can be the id of a cluster.
func isID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= maxID
}
