// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/plane/readiness"
)

// Kind is a kind of object that commands print: its names, its list type and the columns of its table.
type Kind struct {
	Singular, Plural string
	Aliases          []string
	group            string // API group, empty for the core
	inCluster        bool   // it lives in the cluster, not in the management plane
	ofAccount        bool   // it is of no cluster
	List             func() client.ObjectList
	columns          []column
	// also are other names by which people know an object.
	also func(client.Object) []string
}

// column is one column of a kind's table.
type column struct {
	heading string
	wide    bool // shown by -o wide only
	ifAny   bool // shown where an object has something there
	cell    func(object client.Object, now time.Time) string
}

// col makes a column of a concrete type.
func col[T client.Object](heading string, cell func(T) string) column {
	return column{heading: heading, cell: func(object client.Object, _ time.Time) string { return cell(object.(T)) }}
}

func (c column) onlyWide() column { c.wide = true; return c }

// HeadingMessage is the heading of the column that says why an object is not Ready.
const HeadingMessage = "MESSAGE"

// columnMessage says why an object is not as it should be. The column is left out if all are.
func columnMessage[T client.Object](conditions func(T) []metav1.Condition) column {
	c := col(HeadingMessage, func(object T) string { return readiness.Message(conditions(object)) })
	c.ifAny = true
	return c
}

func columnName() column {
	return column{heading: "NAME", cell: func(object client.Object, _ time.Time) string { return NameOf(object) }}
}

func columnAge() column {
	return column{heading: "AGE", cell: func(object client.Object, now time.Time) string {
		created := object.GetCreationTimestamp()
		if created.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(now.Sub(created.Time))
	}}
}

// Qualified is a name as kubectl prints it: nodegroup.muster.dev/default.
func (k Kind) Qualified(name string) string { return k.Typed() + "/" + name }

// Typed returns the kind as kubectl prints it before a name: nodegroup.muster.dev.
func (k Kind) Typed() string {
	if k.group == "" {
		return k.Singular
	}
	return k.Singular + "." + k.group
}

// Word is what people type for the kind.
func (k Kind) Word() string {
	if k.group == certificatesv1.GroupName {
		return "csr"
	}
	return k.Plural
}

// Kinds returns every kind that "muster get" knows.
func Kinds() []Kind {
	return []Kind{Clusters(), NodeGroups(), FargateProfiles(), Addons(), PodIdentityAssociations(), Updates(), Machines(), AutoScalingGroups(), FileSystems(), Stacks(), nodes(), SigningRequests()}
}

// FindKind returns the kind that goes by a name: singular, plural, short or qualified.
func FindKind(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.is(name) {
			return k, true
		}
	}
	return Kind{}, false
}

// is reports whether people call the kind by that name.
func (k Kind) is(name string) bool {
	name = strings.ToLower(name)
	return name == k.Singular || name == k.Plural || slices.Contains(k.Aliases, name) || name == k.Typed() || name == k.Plural+"."+k.group
}

// bare is a name without its kind, so that what -o name prints is taken as an argument.
func (k Kind) bare(name string) string {
	if before, after, ok := strings.Cut(name, "/"); ok && k.is(before) {
		return after
	}
	return name
}

// OfOneCluster reports whether --cluster chooses among the objects of a kind.
func (k Kind) OfOneCluster() bool {
	return k.group == v1alpha1.GroupVersion.Group && !k.inCluster && !k.ofAccount
}

// InNamespace reports whether the objects of a kind are in the namespace of their cluster, in the management plane.
func (k Kind) InNamespace() bool {
	return slices.Contains([]string{"nodegroup", "fargateprofile", "addon", "update"}, k.Singular)
}

// Clusters is the kind Cluster.
func Clusters() Kind {
	return Kind{
		Singular: "cluster", Plural: "clusters", group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.ClusterList{} },
		columns: []column{
			columnName(),
			col("VERSION", func(c *v1alpha1.Cluster) string { return terminal.Or(c.Status.Version, c.Spec.Version) }),
			col("STATUS", func(c *v1alpha1.Cluster) string { return readiness.Word(c, c.Status.Conditions) }),
			col("ENDPOINT", func(c *v1alpha1.Cluster) string { return c.Status.Endpoint }),
			columnAge(),
			col("PRIVATE-ENDPOINT", func(c *v1alpha1.Cluster) string { return c.Status.PrivateEndpoint }).onlyWide(),
			col("VPC", func(c *v1alpha1.Cluster) string { return c.Status.VPCID }).onlyWide(),
			col("PODS", func(c *v1alpha1.Cluster) string { return terminal.Or(c.Status.PodCIDR, c.Spec.Network.PodCIDR) }).onlyWide(),
			col("SERVICES", func(c *v1alpha1.Cluster) string { return c.Spec.Network.ServiceCIDR }).onlyWide(),
			col("NAMESPACE", func(c *v1alpha1.Cluster) string { return c.Namespace }).onlyWide(),
			columnMessage(func(c *v1alpha1.Cluster) []metav1.Condition { return c.Status.Conditions }),
		},
	}
}

// NodeGroups is the kind NodeGroup.
func NodeGroups() Kind {
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	return Kind{
		Singular: "nodegroup", Plural: "nodegroups", Aliases: []string{"ng"}, group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.NodeGroupList{} },
		columns: []column{
			columnName(),
			col("PROVIDER", func(g *v1alpha1.NodeGroup) string { return string(g.Spec.Provider) }),
			col("VERSION", func(g *v1alpha1.NodeGroup) string { return terminal.Or(g.Status.Version, g.Spec.Version) }),
			col("DESIRED", func(g *v1alpha1.NodeGroup) string { return number(g.Spec.ScalingConfig.DesiredSize) }),
			col("MACHINES", func(g *v1alpha1.NodeGroup) string { return number(g.Status.Replicas) }),
			col("READY", func(g *v1alpha1.NodeGroup) string { return number(g.Status.ReadyReplicas) }),
			warmColumn(),
			columnAge(),
			col("MIN", func(g *v1alpha1.NodeGroup) string { return number(g.Spec.ScalingConfig.MinSize) }).onlyWide(),
			col("MAX", func(g *v1alpha1.NodeGroup) string { return number(g.Spec.ScalingConfig.MaxSize) }).onlyWide(),
			col("NAMESPACE", func(g *v1alpha1.NodeGroup) string { return g.Namespace }).onlyWide(),
			col("ISOLATION", func(g *v1alpha1.NodeGroup) string {
				return string(nodegroupspec.Isolation(g.Spec.Provider, g.Spec.Isolation))
			}).onlyWide(),
			col("BOOTSTRAP", func(g *v1alpha1.NodeGroup) string { return string(nodegroupspec.Bootstrap(&g.Spec)) }).onlyWide(),
			col("NODE-ROLE", func(g *v1alpha1.NodeGroup) string { return g.Role() }).onlyWide(),
			columnRepair(),
			columnMessage(func(g *v1alpha1.NodeGroup) []metav1.Condition { return g.Status.Conditions }),
		},
	}
}

// warmColumn says how many machines of a group's warm pool are prepared, of how many. It is left out if no group has a pool.
func warmColumn() column {
	c := col("WARM", func(g *v1alpha1.NodeGroup) string {
		if g.Spec.WarmPool == nil {
			return ""
		}
		return fmt.Sprintf("%d/%d %s", g.Status.WarmReadyReplicas, g.Spec.WarmPoolSize(), g.Spec.WarmPool.State())
	})
	c.ifAny = true
	return c
}

// drillColumn says which drill of a machine goes on. It is left out if no machine has one.
func drillColumn() column {
	c := col("DRILL", func(m *v1alpha1.Machine) string {
		if d := m.Status.Drill; d != nil && d.EndedAt == nil {
			return string(d.Kind)
		}
		return ""
	})
	c.ifAny = true
	return c
}

// columnRepair says whether node auto repair is on, how many machines it finds unhealthy, and in a word why it waits.
func columnRepair() column {
	return col("REPAIR", func(g *v1alpha1.NodeGroup) string {
		switch repair := g.Status.Repair; {
		case repair != nil && repair.HeldReason != "":
			return fmt.Sprintf("%d unhealthy, %s", repair.Unhealthy, repair.HeldReason)
		case repair != nil && repair.Unhealthy > 0:
			return fmt.Sprintf("%d unhealthy", repair.Unhealthy)
		case g.Spec.EKS.Repairs():
			return "on"
		}
		return "off"
	}).onlyWide()
}

// Machines is the kind Machine. Machines also go by node name, provider ID and address.
func Machines() Kind {
	return Kind{
		Singular: "machine", Plural: "machines", Aliases: []string{"ma"}, group: v1alpha1.GroupVersion.Group,
		List: func() client.ObjectList { return &v1alpha1.MachineList{} },
		columns: []column{
			columnName(),
			col("NODEGROUP", func(m *v1alpha1.Machine) string { return m.Spec.NodeGroup }),
			col("PHASE", func(m *v1alpha1.Machine) string {
				if lifecycle := m.Lifecycle(); lifecycle != "" {
					return lifecycle
				}
				if m.DeletionTimestamp != nil {
					return string(v1alpha1.MachineTerminating)
				}
				return terminal.Or(string(m.Status.Phase), string(v1alpha1.MachinePending))
			}),
			drillColumn(),
			col("NODE", func(m *v1alpha1.Machine) string { return m.Status.NodeName }),
			col("ADDRESS", func(m *v1alpha1.Machine) string { return address(m.Status.Addresses) }),
			columnAge(),
			col(headingCluster, func(m *v1alpha1.Machine) string { return m.Spec.ClusterName }).onlyWide(),
			col("PROVIDER", func(m *v1alpha1.Machine) string { return string(m.Spec.Provider) }).onlyWide(),
			col("ISOLATION", func(m *v1alpha1.Machine) string {
				return string(m.Status.Isolation)
			}).onlyWide(),
			col("POD-CIDR", func(m *v1alpha1.Machine) string { return m.Status.PodCIDR }).onlyWide(),
			col("JOINED-IN", joinedIn).onlyWide(),
			columnMessage(func(m *v1alpha1.Machine) []metav1.Condition { return m.Status.Conditions }),
		},
		also: func(object client.Object) []string {
			m := object.(*v1alpha1.Machine)
			names := []string{m.Status.NodeName, m.Status.ProviderID}
			for _, a := range m.Status.Addresses {
				names = append(names, a.Address)
			}
			return names
		},
	}
}

// nodes is the kind Node of the cluster.
func nodes() Kind {
	return Kind{
		Singular: "node", Plural: "nodes", Aliases: []string{"no"}, inCluster: true,
		List: func() client.ObjectList { return &corev1.NodeList{} },
		columns: []column{
			columnName(),
			col("STATUS", nodeStatus),
			col("MACHINE", machineOf),
			col("NODEGROUP", func(n *corev1.Node) string { return n.Labels[v1alpha1.LabelNodeGroup] }),
			col("VERSION", func(n *corev1.Node) string { return n.Status.NodeInfo.KubeletVersion }),
			col("ADDRESS", func(n *corev1.Node) string { return address(n.Status.Addresses) }),
			columnAge(),
			col("OS-IMAGE", func(n *corev1.Node) string { return terminal.Or(n.Status.NodeInfo.OSImage, "<unknown>") }).onlyWide(),
			col("KERNEL-VERSION", func(n *corev1.Node) string { return terminal.Or(n.Status.NodeInfo.KernelVersion, "<unknown>") }).onlyWide(),
			col("CONTAINER-RUNTIME", func(n *corev1.Node) string {
				return terminal.Or(n.Status.NodeInfo.ContainerRuntimeVersion, "<unknown>")
			}).onlyWide(),
		},
		also: func(object client.Object) []string {
			n := object.(*corev1.Node)
			names := []string{machineOf(n)}
			for _, a := range n.Status.Addresses {
				names = append(names, a.Address)
			}
			return names
		},
	}
}

// SigningRequests is the kind CertificateSigningRequest, printed as kubectl does (kubernetes
// pkg/printers/internalversion, printCertificateSigningRequest).
func SigningRequests() Kind {
	return Kind{
		Singular: "certificatesigningrequest", Plural: "certificatesigningrequests", Aliases: []string{"csr", "csrs"},
		group: certificatesv1.GroupName, inCluster: true,
		List: func() client.ObjectList { return &certificatesv1.CertificateSigningRequestList{} },
		columns: []column{
			columnName(), columnAge(),
			col("SIGNERNAME", func(r *certificatesv1.CertificateSigningRequest) string { return r.Spec.SignerName }),
			col("REQUESTOR", func(r *certificatesv1.CertificateSigningRequest) string { return r.Spec.Username }),
			col("REQUESTEDDURATION", func(r *certificatesv1.CertificateSigningRequest) string {
				if r.Spec.ExpirationSeconds == nil {
					return ""
				}
				return duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
			}),
			col("CONDITION", signingStatus),
		},
	}
}

func address(addresses []corev1.NodeAddress) string {
	for _, a := range addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// machineOf is the instance id in a node's provider ID, or "".
func machineOf(n *corev1.Node) string {
	id, _ := v1alpha1.MachineOfProviderID(n.Spec.ProviderID)
	return id
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func signingStatus(r *certificatesv1.CertificateSigningRequest) string {
	has := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
	}
	status := "Pending"
	switch {
	case has(certificatesv1.CertificateDenied):
		status = "Denied"
	case has(certificatesv1.CertificateApproved):
		status = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		status += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		status += ",Issued"
	}
	return status
}

// joinedIn is the time from a machine's launch to its node being Ready.
func joinedIn(m *v1alpha1.Machine) string {
	var launched, ready time.Time
	for _, record := range m.Status.Join {
		if record.Step == v1alpha1.StepLaunched {
			launched = record.Time.Time
		}
		if record.Step == v1alpha1.StepReady {
			ready = record.Time.Time
		}
	}
	if launched.IsZero() || ready.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d ms", ready.Sub(launched).Milliseconds())
}
