// SPDX-License-Identifier: Apache-2.0

package blueprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/iam"
)

// MostGroups is how many node groups one blueprint may have.
const MostGroups = 8

// OnDemand is the capacity type of machines here; there is no other one.
const OnDemand = "ON_DEMAND"

// Blueprint is a cluster with its node groups, or node groups for a cluster that exists.
type Blueprint struct {
	// Token makes a request that is sent twice have one effect: clientRequestToken of EKS.
	Token string
	// Exists reports whether the cluster is there already. Name is its name then, and the other fields of Cluster count for nothing but
	// SubnetIDs, which are those of the machines.
	Exists bool
	Cluster
	Groups []Group
}

// Cluster is what a person chooses of a cluster. Names are those of EKS.
type Cluster struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// RoleARN is the IAM role that EKS assumes.
	RoleARN string `json:"roleArn"`
	// SubnetIDs are those of the cluster and of its machines.
	SubnetIDs    []string `json:"subnetIds"`
	LoggingTypes []string `json:"loggingTypes"`
	Addons       []string `json:"addons"`
	// AutoMode has the control plane launch machines for pending pods. They have the role AutoNodeRole.
	AutoMode     bool   `json:"autoMode"`
	AutoNodeRole string `json:"autoNodeRole"`
}

// Group is what a person chooses of a node group. Names are those of EKS.
type Group struct {
	Name          string            `json:"name"`
	InstanceTypes []string          `json:"instanceTypes"`
	MinSize       int32             `json:"minSize"`
	DesiredSize   int32             `json:"desiredSize"`
	MaxSize       int32             `json:"maxSize"`
	DiskSize      int32             `json:"diskSize"`
	CapacityType  string            `json:"capacityType"`
	Labels        map[string]string `json:"labels"`
	// NodeRole is the ARN of the role of the machines; empty for the cluster's own, which the service makes.
	NodeRole string `json:"nodeRole"`
}

// clusterDocument and groupDocument are the bodies of requests.
type clusterDocument struct {
	Token string `json:"clientRequestToken"`
	Cluster
	NodeGroups []Group `json:"nodeGroups"`
}

type groupDocument struct {
	Token     string   `json:"clientRequestToken"`
	Of        string   `json:"clusterName"`
	SubnetIDs []string `json:"subnetIds"`
	Group
}

// ParseCluster reads the body of a request that makes a cluster.
func ParseCluster(body []byte) (Blueprint, error) {
	var d clusterDocument
	err := strictly(body, &d)
	return Blueprint{Token: d.Token, Cluster: d.Cluster, Groups: d.NodeGroups}, err
}

// ParseGroup reads the body of a request that makes a node group of a cluster that exists.
func ParseGroup(body []byte) (Blueprint, error) {
	var d groupDocument
	err := strictly(body, &d)
	return Blueprint{Token: d.Token, Exists: true, Cluster: Cluster{Name: d.Of, SubnetIDs: d.SubnetIDs}, Groups: []Group{d.Group}}, err
}

// strictly reads one JSON object, all of whose fields are known.
func strictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("reading the request: there is more behind the object")
	}
	return nil
}

// NodeRole is the ARN of the role of a group's machines.
func (b Blueprint) NodeRole(g Group) string {
	if g.NodeRole != "" {
		return g.NodeRole
	}
	return roleARN(v1alpha1.ClusterNodeRole(v1alpha1.ClusterSlug(b.Name)))
}

// roleARN is the ARN of a role of the account.
func roleARN(name string) string {
	return arn.ARN{Partition: iam.Partition, Service: "iam", Account: accountID, Resource: "role/" + name}.String()
}

// capacity is the capacity type of a group.
func (g Group) capacity() string {
	if g.CapacityType == "" {
		return OnDemand
	}
	return g.CapacityType
}

// sortedAddons are the names of the add-ons in an order that no form decides.
func (b Blueprint) sortedAddons() []string { return slices.Sorted(slices.Values(b.Addons)) }
