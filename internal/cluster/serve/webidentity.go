// SPDX-License-Identifier: Apache-2.0

package serve

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

// tokenIssuers are whose tokens STS exchanges for credentials: the clusters of the account, whose keys are known, and
// issuers elsewhere.
type tokenIssuers struct {
	// cluster finds what is known of the pods of the account's cluster with an issuer; errIssuerUnknown if it is no
	// cluster's.
	cluster func(issuer string) (*podSource, error)
	fetcher *issuerkeys.Fetcher
}

var _ identityservice.Issuers = tokenIssuers{}

// errIssuerUnknown means that no cluster of the account has an issuer.
var errIssuerUnknown = errors.New("no cluster of the account has this issuer")

// Keys returns the keys of an issuer. A cluster's are never fetched, so that nobody who answers at its address can sign
// for it: not while it does not run, either.
func (t tokenIssuers) Keys(ctx context.Context, issuer, keyID string) (keys webidentity.Keys, own bool, err error) {
	source, err := t.cluster(issuer)
	switch {
	case errors.Is(err, errIssuerUnknown):
		keys, err = t.fetcher.Keys(ctx, issuer, keyID)
		return keys, false, err
	case err != nil:
		return webidentity.Keys{}, true, err
	}
	_, keys, err = source.issuing.At(time.Now())
	return keys, true, err
}

// Exists reports whether the pod and the service account of a token or a session exist.
func (t tokenIssuers) Exists(issuer string, to webidentity.Bound, issued time.Time) error {
	source, err := t.cluster(issuer)
	if err != nil {
		return err
	}
	err = source.pods.Exists(podwatch.Subject{
		Namespace: to.Namespace, Pod: to.Pod, PodUID: to.PodUID, ServiceAccount: to.ServiceAccount, ServiceAccountUID: to.ServiceAccountUID,
	}, issued)
	if errors.Is(err, podwatch.ErrNoPod) {
		return fmt.Errorf("%w: %w", identityservice.ErrGone, err)
	}
	return err
}

// podsOfIssuer finds what is known of the pods of the account's cluster with an issuer. Another spelling that IAM takes
// for the same provider is the same issuer. The error is errIssuerUnknown only if every cluster has another one,
// clusters that do not run yet included.
func (s *Service) podsOfIssuer(text string) (*podSource, error) {
	wanted := providerOf(text)
	for _, h := range s.clusters() {
		h.mu.Lock()
		own, source := h.specs.Issuer.URL, h.podSource
		h.mu.Unlock()
		if source != nil && providerOf(own) == wanted {
			return source, nil
		}
	}
	dirs, err := s.cfg.State.ListClusters()
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		switch own, err := issuer.Read(dir.Issuer()); {
		case errors.Is(err, fs.ErrNotExist): // it has no tokens
		case err != nil:
			return nil, fmt.Errorf("reading the issuer of cluster %s: %w", dir.Namespace(), err)
		case providerOf(own.String()) == wanted:
			return nil, fmt.Errorf("the cluster %s with the issuer %s does not run yet", dir.Namespace(), own)
		}
	}
	return nil, errIssuerUnknown
}

// providerOf is the form in which IAM compares issuers. One that cannot be a provider stays as it is.
func providerOf(issuer string) string {
	url, err := iam.ProviderURL(issuer)
	if err != nil {
		return issuer
	}
	return url
}
