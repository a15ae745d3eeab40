// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/networkrecord"
	"muster.dev/muster/internal/network/balancerrange"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/statedir"
)

const (
	pollInterval = 100 * time.Millisecond
	// answerTimeout is how long a service that was just started may take until it answers.
	answerTimeout = 15 * time.Second
)

// Session is one `muster up`: it brings a cluster to the requested configuration, and waits.
type Session struct {
	State  statedir.Dir
	Wanted clusterconfig.Config
	// Region that the account is to be in; empty for the one that it is in, or the default.
	Region string
	// IssuerHost is the host in the URLs of issuers, with a port unless that is 443; empty for the one that was chosen,
	// or this host's own name.
	IssuerHost string
	// IssuerByAddress is true when the account's address is to be the host, and nothing else; IssuerHost is empty then.
	IssuerByAddress bool
	// Egress is the way out of the default VPC of an account that is new; NAT if empty.
	Egress egresspolicy.Mode
	// BalancerRange is the range of the host that new load balancers have addresses of; not valid for the one that is
	// kept, or the default.
	BalancerRange netip.Prefix
	// HostRoot are the clusters that may have machines whose root is root on this host, from now on; nil for those that
	// may now.
	HostRoot hostroot.Clusters
	// Explicit is true when the caller gave a configuration now, so that a cluster that exists is changed to it.
	Explicit bool

	// Checked, if not nil, is called when nothing keeps the session from it, and before anything is changed.
	Checked func()
}

// Outcome says what a session had to do.
type Outcome struct {
	// Created is true when there was no cluster here before.
	Created bool
	// Unchanged is true when everything ran already and nothing was changed.
	Unchanged bool
	// Resumed is true when an account that was there had stopped: its machines boot, and their pods are started again.
	Resumed bool
	// Unnamed says why the issuers of the account, which was made, are at an address, which pods cannot reach; nil
	// otherwise.
	Unnamed error
	// RangeChanged is true when new load balancers have addresses of another range now.
	RangeChanged bool
	// HostRootChanged is true when other clusters than before may have machines whose root is root on this host.
	HostRootChanged bool
}

// Start checks everything that can be checked before anything is changed, starts the service unless it runs, and tells
// it the wanted configuration.
func (s Session) Start(ctx context.Context) (Outcome, error) {
	binDir, err := programs.Find(local.Possible())
	if err != nil {
		return Outcome{}, err
	}
	service := controlsocket.NewClient(s.State)
	_, askErr := service.Status(ctx)
	if askErr != nil && !errors.Is(askErr, controlsocket.ErrNotRunning) {
		return Outcome{}, askErr
	}
	if err := s.check(binDir, askErr == nil); err != nil {
		return Outcome{}, err
	}
	if s.Checked != nil {
		s.Checked()
	}
	outcome := Outcome{Created: !s.State.Exists()}
	made, err := s.save(ctx, &outcome)
	if err != nil {
		return Outcome{}, err
	}
	if outcome.RangeChanged, err = balancerrange.Keep(s.State, s.BalancerRange); err != nil {
		return Outcome{}, err
	}
	if s.HostRoot != nil {
		if outcome.HostRootChanged, err = hostroot.Keep(s.State, s.HostRoot); err != nil {
			return Outcome{}, err
		}
	}
	if askErr == nil && guard.Outdated(s.State) {
		if err := guard.StopService(ctx, s.State); err != nil {
			return Outcome{}, err
		}
		askErr = controlsocket.ErrNotRunning
	}
	switch {
	case askErr != nil:
		if running, err := guard.Running(s.State); err == nil {
			outcome.Resumed = !outcome.Created && len(running) == 0
		}
		if err := guard.Start(s.State, binDir); err != nil {
			return Outcome{}, err
		}
		if err := s.waitForAnswer(ctx, service); err != nil {
			return Outcome{}, err
		}
	case made:
		if err := service.Reload(ctx); err != nil {
			return Outcome{}, err
		}
	default:
		outcome.Unchanged = !outcome.RangeChanged && !outcome.HostRootChanged
	}
	if s.Explicit && !made {
		applied, err := s.apply(ctx)
		if err != nil {
			return Outcome{}, err
		}
		outcome.Unchanged = outcome.Unchanged && !applied
	}
	return outcome, nil
}

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
	if err := os.MkdirAll(string(s.State), 0o700); err != nil {
		return false, fmt.Errorf("making state directory: %w", err)
	}
	if !s.State.Exists() {
		if err := statedir.MarkLayout(s.State); err != nil {
			return false, err
		}
	}
	own, err := account.Make(s.State, s.Region)
	if err != nil {
		return false, err
	}
	if outcome.Unnamed, err = s.issuers().Record(ctx, s.State, own); err != nil {
		return false, err
	}
	if err := s.makeDefaultVPC(); err != nil {
		return false, err
	}
	if err := os.MkdirAll(string(cluster), 0o700); err != nil {
		return false, fmt.Errorf("making directory of cluster %s: %w", s.Wanted.Cluster.Spec.Name, err)
	}
	return clusterconfig.Save(cluster.Record(), s.Wanted)
}

// issuers is what the session was asked about the host of issuers.
func (s Session) issuers() issuer.Choice {
	return issuer.Choice{Host: s.IssuerHost, ByAddress: s.IssuerByAddress, Region: s.Region, Pods: s.wantsLocal()}
}

// makeDefaultVPC describes the default VPC of an account that is new, with the way out that was chosen.
func (s Session) makeDefaultVPC() error {
	own, err := account.Read(s.State)
	if err != nil {
		return err
	}
	return networkrecord.DescribeDefault(s.State, own.Region, cmp.Or(s.Egress, egresspolicy.NAT))
}

// checkChange refuses what cannot be changed, before anything is done.
func (s Session) checkChange(saved clusterconfig.Config) error {
	if !s.Explicit {
		return nil
	}
	return clusterconfig.CheckChange(saved.Cluster.Spec, s.Wanted.Cluster.Spec)
}

func (s Session) waitForAnswer(ctx context.Context, service *controlsocket.Client) error {
	deadline := time.Now().Add(answerTimeout)
	for {
		_, err := service.Status(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Now().After(deadline) {
			if errors.Is(err, controlsocket.ErrSlow) {
				return err
			}
			return fmt.Errorf("the service does not start: %s (log: %s)", lastLine(s.State.Log(guard.ProcessServe)), s.State.Log(guard.ProcessServe))
		}
		if err := pause(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// Cluster is the directory of the session's cluster.
func (s Session) Cluster() statedir.Cluster {
	return s.State.Cluster(v1alpha1.ClusterSlug(s.Wanted.Cluster.Spec.Name))
}

// Wait returns when everything that was asked for is there, and shows each status on the way: the account's, and the
// session's cluster's.
func (s Session) Wait(ctx context.Context, timeout time.Duration, show func(servicestatus.Status, servicestatus.Cluster)) (servicestatus.Status, servicestatus.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	service := controlsocket.NewClient(s.State)
	var last servicestatus.Status
	var cluster servicestatus.Cluster
	for {
		status, err := service.Status(ctx)
		if err == nil {
			last = status
			cluster, _ = status.In(s.Cluster().Namespace())
			show(status, cluster)
			if cluster.AsAsked() {
				return status, cluster, nil
			}
		}
		if err := pause(ctx, pollInterval); err != nil {
			if errors.Is(context.Cause(ctx), errTimeout) {
				return last, cluster, fmt.Errorf("not everything is ready after %s%s: `muster status` shows what is missing, and `muster up` waits again", timeout, suffix(cmp.Or(cluster.Message, last.Message)))
			}
			return last, cluster, errors.New("interrupted; the cluster goes on starting in the background: `muster up` waits again, `muster down` stops it")
		}
	}
}

var errTimeout = errors.New("timeout")

func suffix(message string) string {
	if message == "" {
		return ""
	}
	return " (" + message + ")"
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// servingPatience is how long Joins waits for the last serving certificate: kubelets ask for it about when they turn
// Ready, and until it is there `kubectl logs` fails. After a lost audit log the step may never be known.
const servingPatience = 5 * time.Second

// Joins reads the way in of every machine of the cluster, by node name, and waits a moment for ways that are not
// complete yet.
func (s Session) Joins(ctx context.Context) ([]joinlog.Way, error) {
	c, err := planeclient.NewAdministrator(s.State)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(servingPatience)
	for {
		joins, err := joinlog.Ways(ctx, c, s.Wanted.Cluster.Spec.Name)
		if err != nil {
			return nil, err
		}
		if time.Now().After(deadline) || !slices.ContainsFunc(joins, func(j joinlog.Way) bool { return j.Steps[v1alpha1.StepServingCSRIssued] == 0 }) {
			return joins, nil
		}
		if err := pause(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}

// lastLine is the end of a log, for a message to a person.
func lastLine(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "it wrote no log"
	}
	text := strings.TrimSpace(string(raw))
	if text == "" {
		return "it wrote nothing to its log"
	}
	lines := strings.Split(text, "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "Error: ")
}
