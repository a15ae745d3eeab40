// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/clusterconfig"
)

// further reports whether a mode comes after another, so that there is no way back to that.
func further(mode, than v1alpha1.AuthenticationMode) bool {
	order := v1alpha1.AuthenticationModes()
	return slices.Index(order, mode) > slices.Index(order, than)
}

// wantedSpec returns the spec that a cluster is to have. A later mode that the live cluster has stays: there is no way back.
func wantedSpec(live, wanted v1alpha1.ClusterSpec) v1alpha1.ClusterSpec {
	if further(live.AccessConfig.AuthenticationMode, wanted.AccessConfig.AuthenticationMode) {
		wanted.AccessConfig.AuthenticationMode = live.AccessConfig.AuthenticationMode
	}
	return wanted
}

// checkMode refuses to take a cluster back to a mode that it has left.
func checkMode(saved, wanted v1alpha1.ClusterSpec) error {
	is, asked := saved.AccessConfig.AuthenticationMode, wanted.AccessConfig.AuthenticationMode
	if further(is, asked) {
		return fmt.Errorf("spec.accessConfig.authenticationMode: the cluster is in mode %s and cannot go back to %s, which would admit principals again that only access entries keep out: write %[1]s", is, asked)
	}
	return nil
}

// adoptMode makes the service use a mode that was set on the Cluster object, as with kubectl.
func (s *Service) adoptMode(object *v1alpha1.Cluster) {
	saved, err := clusterconfig.Read(s.cfg.State.Config())
	if err != nil {
		s.cfg.Log.Error("changing the authentication mode", "error", err)
		return
	}
	mode := object.Spec.AccessConfig.AuthenticationMode
	if !further(mode, saved.Cluster.Spec.AccessConfig.AuthenticationMode) {
		return
	}
	saved.Cluster.Spec.AccessConfig.AuthenticationMode = mode
	if _, err := saveConfig(s.cfg.State.Config(), saved); err != nil {
		s.cfg.Log.Error("changing the authentication mode", "error", err)
		return
	}
	s.cfg.Log.Info("the authentication mode changed", "mode", string(mode))
	s.requestReload()
}
