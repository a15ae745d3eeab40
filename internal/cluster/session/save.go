// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/cluster/stateconversion"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/platform/steps"
)

// save makes the record of a cluster that there is none of yet; its objects are made from it. From then on they say
// what the cluster is, and the service keeps the record as they are.
func (s Session) save(ctx context.Context, outcome *Outcome) (made bool, err error) {
	cluster := s.Cluster()
	saved, err := clusterconfig.Read(cluster.Record())
	switch {
	case err == nil:
		return false, s.checkChange(saved)
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	var own account.Account
	err = inOrder(
		steps.New("state directory", func() error { return makeDir("state directory", string(s.State)) }),
		steps.New("layout", func() error { return stateconversion.Of(s.State).Mark() }).If(!s.State.Exists()),
		steps.Into("account", &own, func() (account.Account, error) { return account.Make(s.State, s.Region) }),
		steps.Into("issuers", &outcome.Unnamed, func() (error, error) { return s.issuers().Record(ctx, s.State, own) }),
		steps.New("default VPC", func() error {
			return networkrecord.DescribeDefault(s.State, own.Region, cmp.Or(s.Egress, egresspolicy.NAT))
		}),
		steps.New("directory of the cluster", func() error { return makeDir("directory of cluster "+s.Wanted.Cluster.Spec.Name, string(cluster)) }),
		steps.Into("record", &made, func() (bool, error) { return clusterconfig.SaveNew(cluster.Record(), s.Wanted) }),
	)
	return made, err
}

func makeDir(what, path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making %s: %w", what, err)
	}
	return nil
}

// issuers is what the session was asked about the host of issuers.
func (s Session) issuers() issuer.Choice {
	return issuer.Choice{Host: s.IssuerHost, ByAddress: s.IssuerByAddress, Region: s.Region, Pods: s.wantsLocal()}
}

// checkChange refuses what cannot be changed, before anything is done.
func (s Session) checkChange(saved clusterconfig.Config) error {
	if !s.Explicit {
		return nil
	}
	if _, err := planerollout.VersionsOf(s.Cluster(), saved.Cluster.Spec, s.Wanted.Cluster.Spec, time.Now()); err != nil {
		return err
	}
	return clusterconfig.CheckChange(saved.Cluster.Spec, s.Wanted.Cluster.Spec)
}
