// SPDX-License-Identifier: Apache-2.0

package addon

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// The names of the add-ons, which are EKS's.
const (
	CoreDNS            = "coredns"
	KubeProxy          = "kube-proxy"
	VPCCNI             = "vpc-cni"
	MetricsServer      = "metrics-server"
	PodIdentityAgent   = "eks-pod-identity-agent"
	SnapshotController = "snapshot-controller"
	Traefik            = "traefik"
)

// Addon is an entry of the catalogue.
type Addon struct {
	Name string
	// Type is EKS's category.
	Type string
	// Publisher and Owner are those that EKS names.
	Publisher, Owner string
	// Namespace is where its objects are in a cluster.
	Namespace string
	// ServiceAccount is the one that its pods have, if they have one.
	ServiceAccount string
	// Version is the one that there is, such as v1.15.0-eksbuild.1.
	Version string
	// ClusterVersions are the versions of clusters that it is for, such as 1.36.
	ClusterVersions []string
	// Schema is the JSON schema of its configuration.
	Schema string
	// Files are what it needs that clusters do without, by their paths below the directory of Muster's programs.
	Files []string
	// BuiltBy says how these files are made, by which target of make, and in what time where nothing of them is in Go's caches.
	BuiltBy, Target, BuildTime string
	// OnMachines says of an add-on that is a program of each machine how it runs there. It has no objects in the cluster.
	OnMachines string
}

var (
	//go:embed coredns.json
	coreDNSSchema string
	//go:embed metrics-server.json
	metricsServerSchema string
	//go:embed snapshot-controller.json
	snapshotControllerSchema string
	//go:embed traefik.json
	traefikSchema string
)

// The files of add-ons, below the directory of Muster's programs.
const (
	MetricsServerImage      = "images/metrics-server.tar"
	SnapshotControllerImage = "addons/snapshot-controller.tar"
	SnapshotKinds           = "addons/snapshot-kinds.yaml"
	TraefikImage            = "addons/traefik.tar"
	GatewayKinds            = "addons/gateway-api.yaml"
)

// How the files of add-ons are made. `make up` makes those of `make build` once nodes are Ready, so they may be on their way.
const (
	byBuild  = "run `make build` where Muster was built, or wait if `make up` still builds there"
	byAddons = "run `make addons` where Muster was built, once"
	// addonsTime is what `make addons` takes (docs/benchmarks.md).
	addonsTime = "about 5 minutes on two processors"
)

// noSchema is the schema of an add-on that has nothing to configure.
const noSchema = `{"$schema":"http://json-schema.org/draft-06/schema#","type":"object","properties":{},"additionalProperties":false}` + "\n"

// Programs are the versions of the programs that add-ons are of, such as v1.36.3.
type Programs struct{ Kubernetes, CoreDNS, CNI, MetricsServer, SnapshotController, Traefik string }

// Catalogue are the add-ons, by name.
type Catalogue []Addon

// New makes the catalogue of a release with these programs.
func New(programs Programs) Catalogue {
	all := Catalogue{
		{
			Name: CoreDNS, Type: "networking", ServiceAccount: "coredns", Version: build(programs.CoreDNS), Schema: coreDNSSchema,
		},
		{
			Name: KubeProxy, Type: "networking", Version: build(programs.Kubernetes), Schema: noSchema,
			OnMachines: "the agent of each machine runs kube-proxy, in mode nftables",
		},
		{
			Name: VPCCNI, Type: "networking", Version: build(programs.CNI), Schema: noSchema,
			OnMachines: "the network plugins ptp, host-local and portmap are programs of each machine, and the VPC routes the pod range of each node to its machine",
		},
		{
			Name: MetricsServer, Type: "observability", ServiceAccount: MetricsServer, Version: build(programs.MetricsServer), Schema: metricsServerSchema,
			Files: []string{MetricsServerImage}, BuiltBy: byBuild, Target: "build", BuildTime: "about 2 minutes on two processors",
		},
		{
			Name: SnapshotController, Type: "storage", ServiceAccount: SnapshotController, Version: build(programs.SnapshotController), Schema: snapshotControllerSchema,
			Files: []string{SnapshotControllerImage, SnapshotKinds}, BuiltBy: byAddons, Target: "addons", BuildTime: addonsTime,
		},
		{
			Name: Traefik, Type: "networking", ServiceAccount: Traefik, Version: build(programs.Traefik), Schema: traefikSchema,
			Publisher: "traefik", Owner: "community", Files: []string{TraefikImage, GatewayKinds}, BuiltBy: byAddons, Target: "addons", BuildTime: addonsTime,
		},
		{
			Name: PodIdentityAgent, Type: "security", Version: "v1.3.10-eksbuild.1", Schema: noSchema,
			OnMachines: "the agent of each machine answers pods at 169.254.170.23 and [fd00:ec2::23], port 80",
		},
	}
	for i := range all {
		all[i].Namespace, all[i].ClusterVersions = "kube-system", []string{minor(programs.Kubernetes)}
		if all[i].Owner == "" {
			all[i].Publisher, all[i].Owner = "eks", "aws"
		}
	}
	slices.SortFunc(all, func(a, b Addon) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Find returns the add-on of a name.
func (all Catalogue) Find(name string) (Addon, bool) {
	i := slices.IndexFunc(all, func(a Addon) bool { return a.Name == name })
	if i < 0 {
		return Addon{}, false
	}
	return all[i], true
}

// Unbuilt says what is to be done before the add-on can run here; empty if nothing is. Has reports whether a file is there, by its path below
// the directory of Muster's programs.
func (a Addon) Unbuilt(has func(path string) bool) string {
	if slices.ContainsFunc(a.Files, func(path string) bool { return !has(path) }) {
		return fmt.Sprintf("%s %s is not built here: %s", a.Name, a.Version, a.BuiltBy)
	}
	return ""
}

// build is the version of an add-on, from that of its program. The number goes up when the objects of the add-on change and its program does not.
func build(program string) string { return program + "-eksbuild.1" }

func minor(v string) string {
	parts := strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3)
	return parts[0] + "." + parts[1]
}
