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
	"muster.dev/muster/internal/plane/etcdspace"
	"muster.dev/muster/internal/plane/runner"
)

// Run is how a cluster is run at a moment.
type Run struct {
	Components []runner.Status
	// EtcdSpace is what its etcd said last of its space.
	EtcdSpace etcdspace.Space
	// Refused says why the cluster was not changed to what its object asks for; empty if it was.
	Refused string
	// Generation of the object that the cluster follows, or that was refused; 0 if it is not known yet.
	Generation int64
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
		health.Refused, health.Generation = now.Refused, now.Generation
		if pem, err := os.ReadFile(c.Authority(authority.Cluster)); err == nil {
			health.Authority = base64.StdEncoding.EncodeToString(pem)
		} else {
			health.Err = fmt.Errorf("reading the cluster's authority: %w", err)
		}
		if condition, known := apiservermemory.Condition(apiservermemory.Of(now.Components)); known {
			health.Conditions = append(health.Conditions, condition)
		}
		if condition, known := now.EtcdSpace.Condition(); known {
			health.Conditions = append(health.Conditions, condition)
		}
		if summary := runner.Summary(needed(now.Components), time.Now()); summary != "" {
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

// needed are the components that a cluster cannot do without: an API server that is not Ready is not one of them while
// another serves.
func needed(components []runner.Status) []runner.Status {
	server := func(s runner.Status) bool { return component.IsAPIServer(s.Name) }
	if !slices.ContainsFunc(components, func(s runner.Status) bool { return server(s) && s.State == runner.Ready }) {
		return components
	}
	return slices.DeleteFunc(slices.Clone(components), func(s runner.Status) bool { return server(s) && s.State != runner.Ready })
}

// answersRequests reports whether an API server of a cluster and the front are Ready. Before, the API server refuses the
// service, whose roles it has not written yet.
func answersRequests(components []runner.Status) bool {
	return slices.ContainsFunc(components, func(s runner.Status) bool { return component.IsAPIServer(s.Name) && s.State == runner.Ready }) &&
		!slices.ContainsFunc(components, func(s runner.Status) bool { return s.Name == component.Front && s.State != runner.Ready })
}
