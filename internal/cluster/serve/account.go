// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logshipper"
	"muster.dev/muster/internal/platform/release"
)

// Account is what the services of AWS work with.
type Account struct {
	Identity *identityservice.Service
	// Management is a client of the management plane, which answers reads from memory where their context allows it
	// (package readcache).
	Management client.Client
	Components component.Account
	// Pods knows which pods have which identities.
	Pods serviceaccounts.Pods
	// Cluster makes a client of a cluster that is served, by its namespace, for access entries.
	Cluster func(namespace string) (client.Client, error)
	// Insights finds the insights about a cluster.
	Insights func(context.Context, *v1alpha1.Cluster) []insight.Insight
	// CheckVersion says what keeps a cluster from a release: a refusal, or insights with the status ERROR.
	CheckVersion func(context.Context, *v1alpha1.Cluster, release.Release) (refusal string, against []insight.Insight, err error)
	// HostRanges are the addresses of the host for load balancers, which are no VPC's.
	HostRanges func() ([]netip.Prefix, error)
	// Room is what the host offers local machines.
	Room *hostroom.Room
	// Logs is the account's log store.
	Logs *logshipper.Keeper
	// Run runs a function beside the front, whose context ends with the front.
	Run func(func(context.Context))
}
