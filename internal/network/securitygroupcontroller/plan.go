// SPDX-License-Identifier: Apache-2.0

package securitygroupcontroller

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/securitygroup"
	"muster.dev/muster/internal/network/vpc"
)

// Reasons of conditions.
const (
	reasonReady   = "InForce"
	reasonNoVPC   = "VPCNotFound"
	reasonInUse   = "InUse"
	reasonDefault = "DefaultGroup"
	reasonCluster = "ClusterGroup"
	reasonFailed  = "EnforcementFailed"
)

// verdict is what the condition Ready of a group is to say.
type verdict struct {
	ready           bool
	reason, message string
}

// facts are all that a plan is made from: what there is of one VPC.
type facts struct {
	vpc      string
	groups   []v1alpha1.SecurityGroup
	machines []v1alpha1.Machine
	clusters []v1alpha1.Cluster
}

// plan is what is to be done about the groups of a VPC.
type plan struct {
	// missing are groups that the VPC and its clusters come with.
	missing []v1alpha1.SecurityGroup
	// groups, interfaces and endpoints are to be in force.
	groups     []securitygroup.Group
	interfaces []vpc.Interface
	endpoints  map[string][]string
	// released are groups that are being deleted and that nothing is in; ended are those of clusters that are gone.
	released, ended map[string]bool
	verdicts        map[string]verdict
}

// makePlan decides what is in force.
func makePlan(f facts) plan {
	p := plan{endpoints: map[string][]string{}, released: map[string]bool{}, ended: map[string]bool{}, verdicts: map[string]verdict{}}
	own := map[string]string{} // the groups of clusters, by id
	users := map[string][]string{}
	ofCluster := map[string]string{}
	for _, cluster := range f.clusters {
		id := cluster.Status.ClusterSecurityGroupID
		if id == "" {
			continue
		}
		own[id], ofCluster[cluster.Spec.Name] = cluster.Spec.Name, id
		p.endpoints[cluster.Spec.Name] = append([]string{id}, cluster.Spec.SecurityGroupIDs...)
		for _, used := range p.endpoints[cluster.Spec.Name] {
			users[used] = append(users[used], "the API server of cluster "+cluster.Spec.Name)
		}
	}
	for i := range f.machines {
		m := &f.machines[i]
		in := groupsOf(m, f.vpc, ofCluster)
		for _, id := range in {
			users[id] = append(users[id], "machine "+m.Name)
		}
		if ip, err := netip.ParseAddr(address(m)); err == nil && hasInterface(m) {
			pods, _ := netip.ParsePrefix(m.Status.PodCIDR) // empty is none
			p.interfaces = append(p.interfaces, vpc.Interface{Machine: m.Name, Address: ip, PodRange: pods, SecurityGroups: in})
		}
	}
	there := map[string]bool{}
	for i := range f.groups {
		group := &f.groups[i]
		there[group.Name] = true
		p.judge(group, own, users[group.Name])
		if !p.released[group.Name] {
			p.groups = append(p.groups, rules(group))
		}
	}
	if id := v1alpha1.DefaultSecurityGroupID(f.vpc); !there[id] {
		p.add(newGroup(id, f.vpc, v1alpha1.DefaultSecurityGroup, "default VPC security group"))
	}
	for _, cluster := range f.clusters {
		if id := ofCluster[cluster.Spec.Name]; id != "" && !there[id] && cluster.DeletionTimestamp.IsZero() {
			p.add(clusterGroup(id, f.vpc, cluster.Spec.Name))
		}
	}
	return p
}

// add adds a group that is to be made, and in force at once.
func (p *plan) add(group v1alpha1.SecurityGroup) {
	p.missing = append(p.missing, group)
	p.groups = append(p.groups, rules(&group))
}

// judge decides what becomes of one group.
func (p *plan) judge(group *v1alpha1.SecurityGroup, own map[string]string, users []string) {
	cluster := own[group.Name]
	deleting := !group.DeletionTimestamp.IsZero()
	if group.Spec.ClusterName != "" && cluster == "" {
		p.ended[group.Name] = true
	}
	v := verdict{ready: true, reason: reasonReady, message: "its rules are in force"}
	switch {
	case !deleting:
	case group.IsDefault():
		v = verdict{reason: reasonDefault, message: "it is the default group of its VPC and goes with it; until then its rules are in force"}
	case cluster != "":
		v = verdict{reason: reasonCluster, message: "it is the group of cluster " + cluster + " and goes with it; until then its rules are in force"}
	case len(users) > 0:
		v = verdict{reason: reasonInUse, message: "it is deleted once these are not in it any more: " + some(users)}
	default:
		p.released[group.Name] = true
	}
	p.verdicts[group.Name] = v
}

// some names five users at most.
func some(users []string) string {
	const most = 5
	slices.Sort(users)
	if more := len(users) - most; more > 0 {
		users = append(users[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(users, ", ")
}

// groupsOf are the groups that a machine is in: those that it names, or that of its cluster for one of a node group, or
// the VPC's default.
func groupsOf(m *v1alpha1.Machine, vpcID string, clusters map[string]string) []string {
	switch own := clusters[m.Spec.ClusterName]; {
	case len(m.Spec.SecurityGroupIDs) > 0:
		return m.Spec.SecurityGroupIDs
	case m.Spec.Rendered() && own != "":
		return []string{own}
	case m.Spec.Rendered():
		return nil // its cluster is about to say
	}
	return []string{v1alpha1.DefaultSecurityGroupID(vpcID)}
}

// address is the address that the provider assigned.
func address(m *v1alpha1.Machine) string {
	for _, a := range m.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// rules are those of an object that are about packets of a VPC, which has no IPv6.
func rules(group *v1alpha1.SecurityGroup) securitygroup.Group {
	read := securitygroup.Group{ID: group.Name}
	for _, rule := range group.Spec.Rules {
		if rule.CIDRIPv6 != "" || rule.Protocol == "icmpv6" {
			continue
		}
		r := securitygroup.Rule{Direction: securitygroup.Direction(rule.Direction), Protocol: rule.Protocol, Group: rule.GroupID}
		if rule.FromPort != nil && rule.ToPort != nil {
			r.FromPort, r.ToPort = *rule.FromPort, *rule.ToPort
		}
		if rule.CIDRIPv4 != "" {
			r.CIDR, _ = netip.ParsePrefix(rule.CIDRIPv4) // an invalid range is refused with the whole ruleset
		}
		read.Rules = append(read.Rules, r)
	}
	return read
}

func newGroup(id, vpcID, name, description string) v1alpha1.SecurityGroup {
	return v1alpha1.SecurityGroup{
		ObjectMeta: metav1.ObjectMeta{Name: id, Finalizers: []string{v1alpha1.FinalizerSecurityGroup}},
		Spec:       v1alpha1.SecurityGroupSpec{VPCID: vpcID, GroupName: name, Description: description, Rules: v1alpha1.FirstRules(id)},
	}
}

// clusterGroup is the group of a cluster, named and tagged as EKS does.
func clusterGroup(id, vpcID, cluster string) v1alpha1.SecurityGroup {
	sum := sha256.Sum256([]byte(id))
	const digits = 1_000_000_000
	name := fmt.Sprintf("eks-cluster-sg-%s-%d", cluster, digits+binary.BigEndian.Uint64(sum[:8])%digits)
	group := newGroup(id, vpcID, name, "the API server of the cluster, and the machines of its node groups")
	group.Spec.ClusterName = cluster
	group.Spec.Tags = v1alpha1.Tags{"Name": v1alpha1.TagValue(name)}
	if key := "kubernetes.io/cluster/" + cluster; len(key) <= 128 {
		group.Spec.Tags[key] = "owned"
	}
	return group
}
