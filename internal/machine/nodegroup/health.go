// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/plane/apiservermemory"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// Run is how a cluster is run at a moment.
type Run struct {
	Components []runner.Status
	// Refused says why the cluster was not changed to what its object of a generation asks for; empty if it was.
	Refused   string
	RefusedAt int64
}

// HealthOf looks at the components that a cluster cannot do without, and asks the API server for its version by a
// connection.
func HealthOf(c component.Config, connection *rest.Config, run func() Run) (func(context.Context) Health, error) {
	api, err := discovery.NewDiscoveryClientForConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API server's version: %w", err)
	}
	endpoint, err := c.PrivateURL()
	if err != nil {
		return nil, err
	}
	return func(context.Context) Health {
		health := Health{Endpoint: c.Places.Published.URL(), PrivateEndpoint: endpoint, Issuer: c.Issuer.URL, Mode: c.Cluster.Spec.AccessConfig.AuthenticationMode}
		if groups, err := networkrecord.EndpointGroups(c); err != nil {
			health.Err = errors.Join(health.Err, err)
		} else {
			health.SecurityGroups = groups
		}
		now := run()
		health.Refused, health.RefusedAt = now.Refused, now.RefusedAt
		if pem, err := os.ReadFile(c.Authority(authority.Cluster)); err == nil {
			health.Authority = base64.StdEncoding.EncodeToString(pem)
		} else {
			health.Err = fmt.Errorf("reading the cluster's authority: %w", err)
		}
		if condition, known := apiservermemory.Condition(apiservermemory.Of(now.Components)); known {
			health.Conditions = append(health.Conditions, condition)
		}
		if summary := runner.Summary(now.Components, time.Now()); summary != "" {
			health.Err = errors.Join(health.Err, errors.New(summary))
		}
		if !answersRequests(now.Components) { // and says so above
			return health
		}
		version, err := api.WithLegacy().ServerVersion()
		if err != nil {
			health.Err = errors.Join(health.Err, fmt.Errorf("asking the API server for its version: %w", err))
			return health
		}
		health.Version = version.GitVersion
		return health
	}, nil
}

// answersRequests reports whether the API server of a cluster and its front are Ready. Before, the API server refuses the
// service, whose roles it has not written yet.
func answersRequests(components []runner.Status) bool {
	return !slices.ContainsFunc(components, func(s runner.Status) bool {
		return (s.Name == component.APIServer || s.Name == component.Front) && s.State != runner.Ready
	})
}
