// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/issuerkeys"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/podwatch"
)

// Issuers are whose tokens STS exchanges for credentials: the clusters of the account, whose keys are known, and issuers
// elsewhere, whose keys are fetched.
type Issuers struct {
	Clusters

	Fetcher *issuerkeys.Fetcher
}

var _ identityservice.Issuers = Issuers{}

// NewIssuers fetches the keys of issuers elsewhere within the limits of package issuerkeys.
func NewIssuers(clusters Clusters) Issuers {
	return Issuers{clusters, issuerkeys.New(issuerkeys.Config{})}
}

// errIssuerUnknown means that no cluster of the account has an issuer.
var errIssuerUnknown = errors.New("no cluster of the account has this issuer")

// Keys returns the keys of an issuer. A cluster's are never fetched, so that nobody who answers at its address can sign
// for it: not while it does not run, either.
func (i Issuers) Keys(ctx context.Context, issuer, keyID string) (keys webidentity.Keys, own bool, err error) {
	known, err := i.ofIssuer(issuer)
	switch {
	case errors.Is(err, errIssuerUnknown):
		keys, err = i.Fetcher.Keys(ctx, issuer, keyID)
		return keys, false, err
	case err != nil:
		return webidentity.Keys{}, true, err
	}
	_, keys, err = known.Issuing.At(time.Now())
	return keys, true, err
}

// Exists reports whether the pod and the service account of a token or a session exist.
func (i Issuers) Exists(issuer string, to webidentity.Bound, issued time.Time) error {
	known, err := i.ofIssuer(issuer)
	if err != nil {
		return err
	}
	err = known.Pods.Exists(podwatch.Subject{
		Namespace: to.Namespace, Pod: to.Pod, PodUID: to.PodUID, ServiceAccount: to.ServiceAccount, ServiceAccountUID: to.ServiceAccountUID,
	}, issued)
	if errors.Is(err, podwatch.ErrNoPod) {
		return fmt.Errorf("%w: %w", identityservice.ErrGone, err)
	}
	return err
}

// ofIssuer finds the account's cluster with an issuer. Another spelling that IAM takes for the same provider is the same
// issuer. The error is errIssuerUnknown only if every cluster has another one, clusters that do not run yet included.
func (c Clusters) ofIssuer(text string) (Cluster, error) {
	wanted := providerOf(text)
	for _, known := range c.Running() {
		if known.Pods != nil && providerOf(known.Specs.Issuer.URL) == wanted {
			return known, nil
		}
	}
	dirs, err := c.State.ListClusters()
	if err != nil {
		return Cluster{}, err
	}
	for _, dir := range dirs {
		switch own, err := issuer.Read(dir.Issuer()); {
		case errors.Is(err, fs.ErrNotExist): // it has no tokens
		case err != nil:
			return Cluster{}, fmt.Errorf("reading the issuer of cluster %s: %w", dir.Namespace(), err)
		case providerOf(own.String()) == wanted:
			return Cluster{}, fmt.Errorf("the cluster %s with the issuer %s does not run yet", dir.Namespace(), own)
		}
	}
	return Cluster{}, errIssuerUnknown
}

// providerOf is the form in which IAM compares issuers. One that cannot be a provider stays as it is.
func providerOf(issuer string) string {
	url, err := iam.ProviderURL(issuer)
	if err != nil {
		return issuer
	}
	return url
}
