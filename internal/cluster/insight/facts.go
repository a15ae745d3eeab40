// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"strconv"
	"strings"
	"time"
)

// Fact is something about a cluster, unless it could not be found out.
type Fact[T any] struct {
	Is T
	// Unknown says why it could not be found out; empty if it could.
	Unknown string
}

// Facts are what the rules decide by.
type Facts struct {
	Now time.Time
	// Server is the version that the API server says, such as v1.36.4; empty if that is not known.
	Server string
	// Minor of the cluster, as 1.36: the one that it will have if no API server said so yet.
	Minor string
	// Next is the minor that comes next, and Back the one that the cluster can be taken back to; empty if it cannot.
	Next, Back string
	Nodes      Fact[[]Node]
	Addons     Fact[[]Addon]
	Requests   Fact[Requests]
	Webhooks   Fact[[]Webhook]
	Budgets    Fact[[]Budget]
	Kinds      Fact[[]Kind]
	Stored     Fact[[]Stored]
	Host       Host
}

// Node is a node of the cluster, and the versions of its programs.
type Node struct {
	Name, Kubelet, KubeProxy string
	// GoesBack reports whether the node goes back before the cluster does, by the Karpenter of the control plane.
	GoesBack bool
}

// Addon is an EKS add-on of the cluster. Versions are those that there are, by the minors that they fit.
type Addon struct {
	Name, Version string
	Versions      map[string][]string
}

// Requests are deprecated APIs that API servers were asked for since a moment.
type Requests struct {
	Since time.Time
	APIs  []Request
}

// Request is a deprecated API, how often it was asked for, and the minor that removes it; empty if that is not decided.
type Request struct {
	Path, Removed string
	Count         int64
	// Clients asked for it in the last 30 days; the most frequent come first. The control plane's own requests name no
	// client.
	Clients []Client
}

// Client is who asked for a deprecated API.
type Client struct {
	UserAgent string
	Requests  int64
	Last      time.Time
}

// Webhook is a webhook that the API server refuses requests without.
type Webhook struct {
	// URI of its configuration, and its own name.
	URI, Name string
	// Service that answers, as namespace/name, and whether it has an endpoint that is ready.
	Service string
	Ready   bool
	// Resources that it is asked about when they are made or changed, as group/resource; * stands for all.
	Resources []string
	// Some says that labels or conditions choose the objects of them that it is asked about.
	Some bool
}

// Budget is a PodDisruptionBudget.
type Budget struct {
	URI string
	// Pods that it is about, and how many of them may be evicted if all are healthy.
	Pods, Allowed int
}

// Kind is a CustomResourceDefinition: the versions that objects may be stored in, and its versions, which are served or not.
type Kind struct {
	URI    string
	Stored []string
	Served map[string]bool
}

// Stored is a resource of the cluster's minor that the one before does not serve, and how many objects of it there are.
type Stored struct {
	URI     string
	Objects int
}

// Host is what the host has. Figures are in bytes.
type Host struct {
	Memory       Fact[Amount]
	Disk         Fact[Amount]
	Etcd         Fact[Amount]
	Certificates Fact[[]Certificate]
}

// Amount is what is there and how much of that is taken, or what is needed.
type Amount struct{ Is, Of int64 }

// Certificate is a certificate of the control plane, or of an authority.
type Certificate struct {
	Name string
	Ends time.Time
	// Renews reports whether the service renews it by itself.
	Renews bool
}

// minorNumber is 36 of v1.36.3.
func minorNumber(version string) (int, bool) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 || parts[0] != "1" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}
