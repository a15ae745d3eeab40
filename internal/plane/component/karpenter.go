// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
)

// KarpenterProgram is the file of upstream's Karpenter, which `make karpenter` makes, below the directory of Muster's
// programs.
const KarpenterProgram = "addons/karpenter"

// KarpenterCredentials is the file with Karpenter's credentials for the account's AWS APIs, in the form that a
// credential_process of AWS's tools prints. The service writes it, and Karpenter starts once it is there.
func (c Config) KarpenterCredentials() string { return c.file(Karpenter, "credentials.json") }

// Ports of Karpenter in a network namespace of its own.
const (
	karpenterMetrics = 8080
	karpenterHealth  = 8081
)

// karpenterReaches are the ports of the host that Karpenter needs: those of the cluster's API and of the account's AWS
// APIs.
func karpenterReaches(c Config) string {
	return c.Places.Published.Reach.String() + "," + c.Account.Places.Identity.Reach.String()
}

// karpenterProxy dials for Karpenter what that may reach on the host (package webhookproxy).
func karpenterProxy(c Config) (Spec, error) {
	socket := c.Dir.KarpenterProxySocket()
	return Spec{
		Name:        KarpenterProxy,
		Path:        c.program("muster-webhook-proxy"),
		Args:        flags(map[string]string{"own": karpenterReaches(c), "socket": socket}),
		Directories: []string{c.State.Run()},
		View:        &View{Listens: []string{socket}},
		Probe:       &Probe{URL: "http://karpenter-proxy/readyz", Socket: socket},
	}, nil
}

// karpenter is upstream's Karpenter, which binds its ports on all addresses, and so has a network of its own (package
// netsandbox).
func karpenter(c Config) (Spec, error) {
	path, tools, socket := c.file(Karpenter, "kubeconfig"), c.file(Karpenter, "aws-config"), c.Dir.KarpenterSocket()
	cluster, err := kubeconfig(path, c.Places.Published.URL(), c.Authority("cluster"), c.Credential(Karpenter))
	if err != nil {
		return Spec{}, err
	}
	endpoint, err := c.PrivateURL() // that DescribeCluster answers is on this host
	if err != nil {
		return Spec{}, err
	}
	config := fmt.Sprintf("[default]\nregion = %s\ncredential_process = cat %q\n", c.Region.Name, c.KarpenterCredentials())
	trusted := c.Account.Authority(authority.Account)
	return Spec{
		Name: Karpenter,
		Path: c.program("muster-webhook-proxy"),
		Args: append([]string{"sandbox"}, flags(map[string]string{
			"await":        c.KarpenterCredentials(),
			"probe":        netip.AddrPortFrom(c.Places.Published.Reach.Addr(), karpenterHealth).String(),
			"probe-socket": socket,
			"program":      c.program(KarpenterProgram),
			"proxy":        c.Dir.KarpenterProxySocket(),
			"reach":        karpenterReaches(c),
		})...),
		Env:         karpenterSettings(c, map[string]string{"AWS_CA_BUNDLE": trusted, "AWS_CONFIG_FILE": tools, "CLUSTER_ENDPOINT": endpoint, "KUBECONFIG": path}),
		Files:       []File{cluster, {Path: tools, Mode: modePrivate, Content: config}},
		Directories: []string{c.State.Run()},
		Credentials: sorted(c.Credential(Karpenter), c.Authority("cluster")),
		View: &View{
			Reads: sorted(c.Credential(Karpenter)), Public: sorted(c.Authority("cluster")), Fixed: []string{trusted},
			Connects: []string{c.Dir.KarpenterProxySocket()}, Listens: []string{socket}, OwnNetwork: true,
		},
		Probe: &Probe{URL: "http://karpenter/readyz", Socket: socket},
		After: []string{Front, APIServer, KarpenterProxy},
	}, nil
}

// karpenterSettings is Karpenter's environment: the defaults of its chart, how it reaches the account, and the queue of
// interruptions, which has the name of Karpenter's role. One Karpenter runs for a cluster, so it needs no leader election.
// It ends if it is to ask about zonal shifts of a cluster that has none.
func karpenterSettings(c Config, more map[string]string) []string {
	values := map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL":          c.Account.Places.Identity.URL(),
		"BATCH_IDLE_DURATION":       "1s",
		"BATCH_MAX_DURATION":        "10s",
		"CLUSTER_NAME":              c.Cluster.Spec.Name,
		"DISABLE_LEADER_ELECTION":   "true",
		"ENABLE_ZONAL_SHIFT":        strconv.FormatBool(c.Cluster.Spec.ZonalShift != nil && c.Cluster.Spec.ZonalShift.Enabled),
		"HEALTH_PROBE_PORT":         fmt.Sprint(karpenterHealth),
		"HOME":                      "/tmp", // client-go looks for the home directory, and its user is not in /etc/passwd
		"INTERRUPTION_QUEUE":        v1alpha1.ClusterKarpenterRole(c.Dir.Namespace()),
		"LOG_ERROR_OUTPUT_PATHS":    "stderr",
		"LOG_LEVEL":                 "info",
		"LOG_OUTPUT_PATHS":          "stdout",
		"METRICS_PORT":              fmt.Sprint(karpenterMetrics),
		"SYSTEM_NAMESPACE":          "kube-system",
	}
	env := make([]string, 0, len(values)+len(more))
	for _, set := range []map[string]string{values, more} {
		for name, value := range set {
			env = append(env, name+"="+value)
		}
	}
	slices.SortFunc(env, strings.Compare)
	return env
}
