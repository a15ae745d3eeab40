// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/diagnosis"
)

// MachinePage is the page of a machine.
type MachinePage struct {
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
	Cluster string    `json:"cluster,omitempty"`
	// Report is what muster explain says of the machine.
	Report diagnosis.Report `json:"report"`
	Join   Waterfall        `json:"join"`
	// Believed are facts of the machine, each with the source that is believed.
	Believed   []Fact      `json:"believed"`
	Conditions []Condition `json:"conditions"`
	// Certificates of its node, the newest of each signer, and Requests of the node that are still there.
	Certificates []Certificate    `json:"certificates"`
	Requests     []csrview.Review `json:"requests"`
	// KeepsLogs reports whether machines of its provider keep logs.
	KeepsLogs bool `json:"keepsLogs"`
}

// Fact is something that Muster believes of a machine, and whose word that is.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Condition is a condition of the Machine or of its Node.
type Condition struct {
	Of      string    `json:"of"` // machine or node
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Good    bool      `json:"good"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// The sources of facts.
const (
	fromProvider = "provider"
	fromGroup    = "node group"
	fromSubnet   = "subnet"
	fromNode     = "node’s own word"
)

// FindMachine returns the instance id of the machine that goes by an instance id, a node's name or a private address.
func FindMachine(f Facts, name string) (string, bool) {
	for i := range f.Machines {
		m := &f.Machines[i]
		if name != "" && (m.Name == name || m.Status.NodeName == name || address(m) == name) {
			return m.Name, true
		}
	}
	return "", false
}

// NewMachinePage makes the page of a machine by its instance id; false if there is no such machine.
func NewMachinePage(f Facts, id string, report diagnosis.Report) (MachinePage, bool) {
	n := slices.IndexFunc(f.Machines, func(m v1alpha1.Machine) bool { return m.Name == id })
	if n < 0 {
		return MachinePage{}, false
	}
	m, zones := &f.Machines[n], f.zones()
	bad := report.Verdict == diagnosis.Found || report.Verdict == diagnosis.NotKnown
	page := MachinePage{
		At: f.At, Cluster: m.Spec.ClusterName, Report: report, Join: NewWaterfall(m, f.Machines), KeepsLogs: m.Spec.Provider.Can(v1alpha1.KeepLogs),
		Certificates: []Certificate{}, Requests: []csrview.Review{},
	}
	page.Machine = listed(m, nil, zones)
	page.Machine.State = stateOf(m, bad)
	of := f.Of[m.Spec.ClusterName]
	var node *corev1.Node
	if i := slices.IndexFunc(of.Nodes, func(n corev1.Node) bool { return n.Name == m.Status.NodeName }); i >= 0 && m.Status.NodeName != "" {
		node = &of.Nodes[i]
	}
	page.Believed = believed(m, node, zones)
	page.Conditions = conditions(m, node)
	for _, c := range of.Certificates {
		if c.Owner == m.Status.NodeName && c.Owner != "" && c.Request != "" {
			page.Certificates = append(page.Certificates, c)
		}
	}
	for _, r := range of.Reviews {
		if name, ok := strings.CutPrefix(r.Asked.CommonName, "system:node:"); ok && name != "" && name == m.Status.NodeName {
			page.Requests = append(page.Requests, r)
		}
	}
	slices.SortStableFunc(page.Requests, func(a, b csrview.Review) int { return b.Created.Compare(a.Created) })
	return page, true
}

// believed are the facts of a machine. A fact that its Node alone says is a stranger's word, and is marked as such.
func believed(m *v1alpha1.Machine, node *corev1.Node, zones map[string]string) []Fact {
	facts := []Fact{
		{"Instance", m.Name, fromProvider},
		{"Provider", string(m.Spec.Provider), fromGroup},
		{"Cluster", m.Spec.ClusterName, fromGroup},
		{"Node group", m.Spec.NodeGroup, fromGroup},
		{"Node name", m.Status.NodeName, fromProvider},
	}
	for _, a := range m.Status.Addresses {
		facts = append(facts, Fact{string(a.Type), a.Address, fromProvider})
	}
	facts = append(facts,
		Fact{"Pods", m.Status.PodCIDR, fromProvider},
		Fact{"Subnet", string(m.Spec.SubnetID), fromGroup},
		Fact{"Zone", zones[string(m.Spec.SubnetID)], fromSubnet},
		Fact{"Instance profile", m.Spec.InstanceProfile, fromGroup},
		Fact{"Instance type", m.Spec.InstanceType, fromGroup},
		Fact{"Image", m.Spec.ImageID, fromGroup},
		Fact{"Isolation", string(m.Status.Isolation), fromProvider},
	)
	if m.Status.BootstrapTokenID != "" {
		facts = append(facts, Fact{"Bootstrap token", m.Status.BootstrapTokenID, "management plane"})
	}
	if node != nil {
		facts = append(facts,
			Fact{"Kubelet", node.Status.NodeInfo.KubeletVersion, fromNode},
			Fact{"Operating system", node.Status.NodeInfo.OSImage, fromNode},
			Fact{"Kernel", node.Status.NodeInfo.KernelVersion, fromNode},
			Fact{"Container runtime", node.Status.NodeInfo.ContainerRuntimeVersion, fromNode},
		)
	}
	return slices.DeleteFunc(facts, func(f Fact) bool { return f.Value == "" })
}

// badIfTrue are the conditions that are good while they are False (k8s.io/api, core/v1, NodeConditionType).
var badIfTrue = []string{string(corev1.NodeMemoryPressure), string(corev1.NodeDiskPressure), string(corev1.NodePIDPressure), string(corev1.NodeNetworkUnavailable)}

// conditions are those of the Machine, then those of its Node, each in their order.
func conditions(m *v1alpha1.Machine, node *corev1.Node) []Condition {
	all := []Condition{}
	add := func(of, kind, status, reason, message string, since metav1.Time) {
		good := status == string(metav1.ConditionTrue)
		if slices.Contains(badIfTrue, kind) {
			good = status == string(metav1.ConditionFalse)
		}
		all = append(all, Condition{of, kind, status, good, reason, message, since.UTC()})
	}
	for _, c := range m.Status.Conditions {
		add("machine", c.Type, string(c.Status), c.Reason, c.Message, c.LastTransitionTime)
	}
	if node != nil {
		for _, c := range node.Status.Conditions {
			add("node", string(c.Type), string(c.Status), c.Reason, c.Message, c.LastTransitionTime)
		}
	}
	slices.SortStableFunc(all, func(a, b Condition) int {
		return cmp.Or(strings.Compare(a.Of, b.Of), strings.Compare(a.Type, b.Type))
	})
	return all
}
