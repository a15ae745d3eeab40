// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/cluster/insight/insightfacts"
	"muster.dev/muster/internal/cluster/updatecontroller"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/planerollout"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
)

// factsTimeout is how long facts about a cluster are asked for. Facts that are not known by then are told as that.
const factsTimeout = 20 * time.Second

// versions says which releases the control planes of clusters can be taken to, and finds the insights about them.
type versions struct {
	*Service
	management client.Reader
}

// insights finds the insights about a cluster.
func (v versions) insights(ctx context.Context, object *v1alpha1.Cluster) []insight.Insight {
	facts := v.facts(ctx, object)
	return append(insight.Upgrade(facts), insight.Rollback(facts)...)
}

// check says what keeps the control plane of a cluster from a release: a refusal, or insights with the status ERROR.
func (v versions) check(ctx context.Context, object *v1alpha1.Cluster, to release.Release) (refusal string, against []insight.Insight, err error) {
	dir := v.cfg.State.Cluster(object.Namespace)
	saved, err := clusterconfig.Read(dir.Record())
	if err != nil {
		return "", nil, err
	}
	asked, err := planerollout.VersionsOf(dir, saved.Cluster.Spec, v1alpha1.ClusterSpec{Version: to.Minor()}, time.Now())
	if err != nil {
		return err.Error(), nil, nil //nolint:nilerr // the error is the refusal
	}
	if !asked.Moves() {
		return "", nil, nil
	}
	return v.checkMove(ctx, object, to, func(m v1alpha1.Machine) bool { return updatecontroller.GoesBack(object.Spec, &m, to) })
}

// checkMove says the same of a release that follows the one that the plane runs. Machines that go back before the plane keep
// it from nothing.
func (v versions) checkMove(ctx context.Context, object *v1alpha1.Cluster, to release.Release, goesBack func(v1alpha1.Machine) bool) (refusal string, against []insight.Insight, err error) {
	if missing := programs.Unbuilt(v.cfg.BinDir, to); missing != "" {
		return "spec.version: " + missing, nil, nil
	}
	var machines v1alpha1.MachineList
	if err := v.management.List(ctx, &machines); err != nil {
		return "", nil, fmt.Errorf("listing the machines of cluster %s: %w", object.Spec.Name, err)
	}
	var groups v1alpha1.NodeGroupList
	if err := v.management.List(ctx, &groups, client.InNamespace(object.Namespace)); err != nil {
		return "", nil, fmt.Errorf("listing the node groups of cluster %s: %w", object.Spec.Name, err)
	}
	own := slices.DeleteFunc(machines.Items, func(m v1alpha1.Machine) bool { return m.Spec.ClusterName != object.Spec.Name || goesBack(m) })
	if err := clustercontroller.CheckMachines(to, own, groups.Items); err != nil {
		return err.Error(), nil, nil //nolint:nilerr // the error is the refusal
	}
	facts := v.facts(ctx, object)
	if to.Minor() == facts.Back {
		return "", insight.Against(insight.Rollback(facts)), nil
	}
	return "", insight.Against(insight.Upgrade(facts)), nil
}

// facts are what insights about a cluster are found by.
func (v versions) facts(ctx context.Context, object *v1alpha1.Cluster) insight.Facts {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	dir, now := v.cfg.State.Cluster(object.Namespace), time.Now()
	return insightfacts.Gather(ctx, insightfacts.Sources{
		Object: object, Management: v.management, Now: now, Back: planerollout.Back(dir, now),
		Host: insightfacts.Host(string(v.cfg.State), dir.Etcd(), authority.NewStore(dir.PKI()), v.memory),
		Cluster: func() (client.Client, error) {
			specs, err := v.specsOf(object.Namespace)
			if err != nil {
				return nil, err
			}
			scheme, err := planeclient.Scheme()
			if err != nil {
				return nil, err
			}
			return client.New(planeclient.Cluster(specs), client.Options{Scheme: scheme})
		},
		Deprecated: func(ctx context.Context) (deprecation.Seen, error) { return v.deprecated(ctx, object.Namespace) },
		Callers:    func(ctx context.Context) (deprecationlog.Seen, error) { return v.callers(ctx, object.Namespace) },
	})
}
