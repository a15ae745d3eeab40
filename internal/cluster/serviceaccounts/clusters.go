// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/caller"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podwatch"
	"muster.dev/muster/internal/plane/signerclient"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/statedir"
)

// Cluster is what a cluster that runs here knows of its service accounts. All of it is zero while the cluster begins.
type Cluster struct {
	Specs   component.Config
	Signer  *signerclient.Known
	Issuing *tokenkeys.Issuing
	Pods    *podwatch.Watch
	Webhook *podidentity.Webhook
}

// NewCluster makes what knows the service accounts of a cluster; it knows nothing until it runs.
func NewCluster(specs component.Config, log *slog.Logger) (Cluster, error) {
	c := Cluster{Specs: specs, Signer: signerclient.New(specs, log), Webhook: podidentity.NewWebhook(specs)}
	var err error
	if c.Issuing, err = tokenkeys.NewIssuing(specs.Issuer.URL, c.Signer.Ring); err != nil {
		return Cluster{}, err
	}
	c.Pods, err = podwatch.NewForConfig(planeclient.Cluster(specs), nil)
	return c, err
}

// Run asks the token signer for its keys and watches pods, until the context ends.
func (c Cluster) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { c.Signer.Run(ctx) })
	c.Pods.Run(ctx)
}

func (c Cluster) name() string { return c.Specs.Cluster.Spec.Name }

// Clusters are the clusters of an account. Its methods are safe for use by many at once.
type Clusters struct {
	State statedir.Dir
	// Running returns the clusters that run here, at this moment.
	Running func() []Cluster
	Log     *slog.Logger
}

// Has reports whether the cluster of an authenticator runs here.
func (c Clusters) Has(who caller.Caller) bool {
	return slices.ContainsFunc(c.Running(), func(known Cluster) bool {
		return known.name() == who.Cluster && known.Specs.Issuer.ID == who.ID
	})
}

// Documents finds the documents of the cluster that runs here and whose issuer has an id.
func (c Clusters) Documents(id string) (issuer.Documents, bool) {
	for _, known := range c.Running() {
		if known.Issuing == nil || known.Issuing.Issuer.ID != id {
			continue
		}
		documents, _, err := known.Issuing.At(time.Now())
		if err != nil {
			c.Log.Error("the documents of the issuer are not served", "cluster", known.Specs.Dir.Namespace(), "error", err)
		}
		return documents, err == nil
	}
	return issuer.Documents{}, false
}
