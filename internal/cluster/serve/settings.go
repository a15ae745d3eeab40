// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clustercontroller"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/featuregates"
	"muster.dev/muster/internal/plane/nodeports"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// settings refuses settings of a cluster that is there, which its Services or the programs of its next release stand
// against. Settings of the record that stay are not looked at again.
func (c clusterHosts) settings(ctx context.Context, h *hosted) clustercontroller.CheckSettings {
	return func(is, wanted v1alpha1.ClusterSpec, next release.Release) error {
		var refused []error
		if !maps.Equal(is.FeatureGates, wanted.FeatureGates) || len(wanted.FeatureGates) > 0 && is.Version != wanted.Version {
			refused = append(refused, h.asked.check(ctx, c.account.BinDir, next, wanted.FeatureGates))
		}
		if nodeports.RangeOf(is) != nodeports.RangeOf(wanted) {
			refused = append(refused, c.nodePorts(ctx, h, nodeports.RangeOf(wanted)))
		}
		refused = append(refused, c.compute(ctx, h, is, wanted))
		for _, err := range refused {
			if _, ok := errors.AsType[unasked](err); ok {
				return err
			}
		}
		return errors.Join(refused...)
	}
}

// nodePorts refuses a range of ports that Services have others than.
func (c clusterHosts) nodePorts(ctx context.Context, h *hosted, wanted v1alpha1.NodePortRange) error {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return unasked{fmt.Errorf("learning the kinds of Kubernetes: %w", err)}
	}
	cluster, err := c.clusterClient(scheme, h.dir.Namespace())
	if err != nil {
		return unasked{err}
	}
	says, err := nodeports.Refusal(ctx, cluster, wanted)
	if err != nil {
		return unasked{err}
	}
	if says != "" {
		return fmt.Errorf("spec.apiServer.serviceNodePortRange: %s", says)
	}
	return nil
}

// askedGates is what the programs of a release said last about feature gates: what they refuse is asked again and again
// until it is changed.
type askedGates struct {
	question string
	answer   error
}

// check refuses feature gates that the programs of a release do not take. It is used by one at a time.
func (a *askedGates) check(ctx context.Context, binDir string, of release.Release, gates v1alpha1.FeatureGates) error {
	question := of.Version + " " + component.FeatureGateFlag(gates)
	if a.question == question {
		return a.answer
	}
	err := checkGates(ctx, binDir, of, gates)
	if _, ok := errors.AsType[unasked](err); !ok {
		a.question, a.answer = question, err
	}
	return err
}

func checkGates(ctx context.Context, binDir string, of release.Release, gates v1alpha1.FeatureGates) error {
	var programs []string
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		programs = append(programs, of.Program(binDir, name))
	}
	err := featuregates.Check(ctx, programs, gates)
	if refusal, ok := errors.AsType[*featuregates.Refusal](err); ok {
		return fmt.Errorf("spec.featureGates: Kubernetes %s does not take them: %w: leave these out, or write others", of.Minor(), refusal)
	}
	if err != nil {
		return unasked{err}
	}
	return nil
}

// admitGates refuses feature gates of a new cluster.
func (c clusterHosts) admitGates(ctx context.Context, object *v1alpha1.Cluster) error {
	if len(object.Spec.FeatureGates) == 0 {
		return nil
	}
	of, err := clusterconfig.ReleaseOf(object.Spec.Version)
	if err != nil {
		return err
	}
	err = checkGates(ctx, c.account.BinDir, of, object.Spec.FeatureGates)
	if _, ok := errors.AsType[unasked](err); ok || err == nil {
		return err
	}
	return &clustercontroller.Refusal{Reason: readiness.ReasonInvalidSpec, Message: err.Error()}
}

// warnOfGates tells by an Event which feature gates of a cluster are alpha.
func (h *hosted) warnOfGates(of release.Release, binDir string, gates v1alpha1.FeatureGates) {
	alpha, err := featuregates.Alpha(h.ctx, of.Program(binDir, "kube-apiserver"), gates)
	if err != nil {
		h.log.Error("asking which feature gates are alpha", "error", err)
	}
	if len(alpha) > 0 {
		h.news.Warn("FeatureGatesAlpha", fmt.Sprintf("spec.featureGates turns on what Kubernetes %s calls alpha: %s. It may lose what is stored with it, and may be gone in the next minor, "+
			"which then refuses the gate: take the cluster up one minor without it", of.Minor(), strings.Join(alpha, ", ")))
	}
}
