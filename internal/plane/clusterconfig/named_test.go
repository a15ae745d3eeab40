// SPDX-License-Identifier: Apache-2.0

package clusterconfig_test

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/clusterconfig"
)

func TestParseNamed(t *testing.T) {
	t.Parallel()
	const group = "{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, spec: {name: web, scalingConfig: {desiredSize: 1}}}\n"
	cluster := func(name string) string {
		return "{apiVersion: muster.dev/v1alpha1, kind: Cluster, spec: {name: " + name + "}}\n---\n"
	}
	for name, test := range map[string]struct{ text, cluster, want, err string }{
		"by the text":         {cluster("Blue") + group, "", "Blue", ""},
		"by both":             {cluster("Blue") + group, "Blue", "Blue", ""},
		"by the name alone":   {group, "Blue", "Blue", ""},
		"by neither":          {group, "", "", "f.yaml: holds no Cluster that could be read: give the cluster's name, or a document of kind Cluster"},
		"by each differently": {cluster("Blue") + group, "Red", "", `f.yaml: document 1 (Cluster Blue): line 1: spec.name: Invalid value: "Blue": must be "Red", the name that was given beside the file`},
		"a name that is bad":  {group, "a b", "", `f.yaml: Cluster a b: spec.name: Invalid value: "a b": must begin with a letter or digit and be of at most 100 letters, digits, - and _`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := clusterconfig.ParseNamed("f.yaml", []byte(test.text), test.cluster)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil || config.Cluster.Spec.Name != test.want || len(config.NodeGroups) != 1 || config.NodeGroups[0].Namespace != v1alpha1.ClusterSlug(test.want) {
				t.Errorf("%v, %+v, want one called %s", err, config, test.want)
			}
		})
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	asked := clusterconfig.Named("blue", 0, v1alpha1.ProviderLocal).Cluster.Spec
	for name, test := range map[string]struct {
		change func(is, asked *v1alpha1.ClusterSpec)
		want   string
	}{
		"none": {func(_, _ *v1alpha1.ClusterSpec) {}, ""},
		"chosen by others": {func(is, _ *v1alpha1.ClusterSpec) {
			is.Version, is.APIServer.Port, is.DeletionProtection = "v1.36.3", 4711, true
		}, ""},
		"a field":             {func(is, _ *v1alpha1.ClusterSpec) { is.Network.ServiceCIDR = "10.1.0.0/16" }, "network.serviceCIDR 10.1.0.0/16, not 10.100.0.0/16"},
		"one that is missing": {func(_, asked *v1alpha1.ClusterSpec) { asked.DeletionProtection = true }, "deletionProtection none, not true"},
		"two": {
			func(is, asked *v1alpha1.ClusterSpec) {
				is.Name, asked.Version, is.Version = "Red", "v1.36.3", "v1.37.0"
			},
			"name Red, not blue; version v1.37.0, not v1.36.3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is, wanted := asked.DeepCopy(), asked.DeepCopy()
			test.change(is, wanted)
			if got, err := clusterconfig.Differences(is, wanted); err != nil || got != test.want {
				t.Errorf("Differences = %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
