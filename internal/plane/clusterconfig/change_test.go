// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func inMode(mode v1alpha1.AuthenticationMode) v1alpha1.ClusterSpec {
	return v1alpha1.ClusterSpec{Version: "1.36", AccessConfig: v1alpha1.ClusterAccessConfig{AuthenticationMode: mode}}
}

func TestModesGoOneWay(t *testing.T) {
	t.Parallel()
	modes := v1alpha1.AuthenticationModes()
	for i, is := range modes {
		for j, asked := range modes {
			for name, check := range map[string]func(is, wanted v1alpha1.ClusterSpec) error{"CheckMode": CheckMode, "CheckChange": CheckChange} {
				err := check(inMode(is), inMode(asked))
				if (err != nil) != (j < i) || err != nil && !strings.Contains(err.Error(), "write "+string(is)) {
					t.Errorf("%s from %s to %s: %v", name, is, asked, err)
				}
			}
		}
	}
	if err := CheckMode(v1alpha1.ClusterSpec{}, inMode(v1alpha1.AuthenticationConfigMap)); err != nil {
		t.Errorf("a cluster from before there were modes: %v", err)
	}
}

func TestNetworkStays(t *testing.T) {
	t.Parallel()
	is, wanted := Default(1, v1alpha1.ProviderLocal).Cluster.Spec, Default(1, v1alpha1.ProviderLocal).Cluster.Spec
	wanted.APIServer.Port = 20443
	if err := CheckChange(is, wanted); err != nil {
		t.Errorf("another port: %v", err)
	}
	wanted.Network.PodCIDR = "10.99.0.0/16"
	if err := CheckChange(is, wanted); err == nil || !strings.HasPrefix(err.Error(), "spec.network: ") || !strings.Contains(err.Error(), is.Network.PodCIDR) {
		t.Errorf("another range of pods: %v", err)
	}
}
