// SPDX-License-Identifier: Apache-2.0

package serviceaccounts

import (
	"log/slog"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podwatch"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/statedir"
)

// Cluster is what a cluster that runs here knows of its service accounts. All of it is zero while the cluster begins.
type Cluster struct {
	Specs   component.Config
	Issuing *tokenkeys.Issuing
	Pods    *podwatch.Watch
	Webhook *podidentity.Webhook
}

func (c Cluster) name() string { return c.Specs.Cluster.Spec.Name }

// Clusters are the clusters of an account. Its methods are safe for use by many at once.
type Clusters struct {
	State statedir.Dir
	// Running returns the clusters that run here, at this moment.
	Running func() []Cluster
	Log     *slog.Logger
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
