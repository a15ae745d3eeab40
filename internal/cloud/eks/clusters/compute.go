// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/iam/iam"
)

// computeConfig is EKS Auto Mode's, of requests and answers.
type computeConfig struct {
	Enabled     *bool
	NodePools   []string
	NodeRoleARN string
}

// storageConfig and elasticLoadBalancing are switched with computeConfig. Volumes and load balancers are here without
// them, too.
type storageConfig struct{ BlockStorage *onOff }

// autoMode is what a request says of EKS Auto Mode.
type autoMode struct {
	compute          *computeConfig
	storage, balance *onOff
}

// asked reports whether the request is about EKS Auto Mode.
func (m autoMode) asked() bool { return m.compute != nil || m.storage != nil || m.balance != nil }

// enabled is the switch of computeConfig, and otherwise if the request leaves it out.
func (m autoMode) enabled(otherwise bool) bool {
	if m.compute == nil {
		return otherwise
	}
	return eksresource.Deref(m.compute.Enabled, otherwise)
}

// read is the compute of a cluster's spec after a request, which changes that of the spec.
func (m autoMode) read(is *v1alpha1.ClusterCompute, refuse eksfault.Refuse) (*v1alpha1.ClusterCompute, error) {
	on := m.enabled(is.On())
	if m.storage.on(is.On()) != on || m.balance.on(is.On()) != on {
		return nil, refuse("For EKS Auto Mode, please ensure that all required configs, including computeConfig, kubernetesNetworkConfig, and blockStorage are all either fully enabled or fully disabled.")
	}
	wanted := v1alpha1.ClusterCompute{Enabled: on}
	if is.On() && on {
		wanted.NodePools, wanted.NodeRole = is.NodePools, is.NodeRole
	}
	if asked := m.compute; asked != nil {
		if asked.NodePools != nil {
			var err error
			if wanted.NodePools, err = poolsOf(asked.NodePools, refuse); err != nil {
				return nil, err
			}
		}
		if asked.NodeRoleARN != "" {
			wanted.NodeRole = asked.NodeRoleARN
		}
	}
	if !on {
		if wanted.NodePools != nil || wanted.NodeRole != "" {
			return nil, refuse("When computeConfig is disabled, nodePools and nodeRoleArn must be left out")
		}
		return &wanted, nil
	}
	switch {
	case wanted.NodeRole != "" && len(wanted.NodePools) == 0:
		return nil, refuse("When Compute Config nodeRoleArn is not null or empty, nodePool value(s) must be provided.")
	case wanted.NodeRole == "" && len(wanted.NodePools) > 0:
		return nil, refuse("When Compute Config nodePools are provided, nodeRoleArn must be provided.")
	case is.On() && is.NodeRole != "" && is.NodeRole != wanted.NodeRole:
		return nil, refuse("The nodeRoleArn of a cluster cannot be changed while its node pools have it: it is %s", is.NodeRole)
	}
	return &wanted, nil
}

// checkNodeRole refuses a role that machines cannot have.
func (a *API) checkNodeRole(ctx context.Context, compute *v1alpha1.ClusterCompute, refuse eksfault.Refuse) error {
	if !compute.On() || compute.NodeRole == "" {
		return nil
	}
	if !passrole.IsARN(compute.NodeRole) {
		return refuse("The nodeRoleArn %.300q is not the ARN of a role", compute.NodeRole)
	}
	found, err := passrole.Find(ctx, a.store.Management, compute.NodeRole)
	switch {
	case err != nil:
		return err
	case found == nil:
		return refuse("The role %.300s does not exist", compute.NodeRole)
	case !passrole.LetsIn(found, a.store.Region, passrole.EC2, "sts:AssumeRole", nil):
		return refuse("The trust policy of the role %s must let %s assume it", compute.NodeRole, passrole.EC2)
	}
	return nil
}

// checkCompute refuses Karpenter in the control plane where it cannot be; of is nil for a new cluster.
func (a *API) checkCompute(ctx context.Context, of *v1alpha1.Cluster, wanted v1alpha1.ClusterSpec, refuse eksfault.Refuse) error {
	var addons v1alpha1.AddonList
	if of != nil && of.Spec.Compute.On() {
		return nil
	}
	if of != nil && wanted.Compute.On() {
		if err := a.store.Management.List(ctx, &addons, client.InNamespace(of.Namespace)); err != nil {
			return eksfault.Away(fmt.Errorf("listing the add-ons of cluster %s: %w", wanted.Name, err))
		}
	}
	if says := a.Compute(wanted, addons.Items); says != "" {
		return refuse("%s", says)
	}
	return nil
}

// passed is what IAM is asked about the role of machines.
func (m autoMode) passed(ctx context.Context, a *API, call *awsfront.Call, cluster string) ([]awsfront.Target, error) {
	if m.compute == nil {
		return nil, nil
	}
	return passrole.Targets(ctx, a.store.Management, m.compute.NodeRoleARN, passrole.EKS, a.store.ClusterARN(call, cluster))
}

// showCompute is EKS Auto Mode as DescribeCluster tells of it; nothing of a cluster that never had it.
func showCompute(c *v1alpha1.Cluster, shown *cluster) {
	is := c.Spec.Compute
	if is == nil {
		return
	}
	on := is.Enabled
	shown.ComputeConfig = &computeConfig{Enabled: &on, NodePools: []string{}}
	for _, pool := range is.NodePools {
		shown.ComputeConfig.NodePools = append(shown.ComputeConfig.NodePools, string(pool))
	}
	if on && len(is.NodePools) > 0 {
		shown.ComputeConfig.NodeRoleARN = roleARN(account.DefaultID, c.ComputeRole())
	}
	shown.StorageConfig = &storageConfig{BlockStorage: &onOff{&on}}
	shown.KubernetesNetworkConfig.ElasticLoadBalancing = &onOff{&on}
}

// roleARN is the ARN of a role that is named by name or ARN.
func roleARN(of, role string) string {
	if passrole.IsARN(role) {
		return role
	}
	return arn.ARN{Partition: iam.Partition, Service: "iam", Account: of, Resource: "role/" + role}.String()
}

// autoMode changes EKS Auto Mode.
func (in *updateClusterConfigInput) autoMode(p *change.Plan, refuse eksfault.Refuse) error {
	is := p.Of.Spec.Compute
	wanted, err := in.mode().read(is, refuse)
	if err != nil {
		return err
	}
	before := is
	if before == nil {
		before = &v1alpha1.ClusterCompute{}
	}
	if equality.Semantic.DeepEqual(before, wanted) {
		return refuse("No changes needed for the EKS Auto Mode config provided")
	}
	p.Type, p.Change.Compute = v1alpha1.UpdateAutoMode, wanted
	type shown struct {
		Enabled   bool                    `json:"enabled"`
		NodePools []v1alpha1.NodePoolName `json:"nodePools,omitempty"`
		NodeRole  string                  `json:"nodeRoleArn,omitempty"`
	}
	text, err := json.Marshal(shown{wanted.Enabled, wanted.NodePools, wanted.NodeRole})
	if err != nil {
		return err
	}
	p.Param("ComputeConfig", string(text))
	p.Param("KubernetesNetworkConfig", fmt.Sprintf(`{"elasticLoadBalancing":{"enabled":%v}}`, wanted.Enabled))
	p.Param("StorageConfig", fmt.Sprintf(`{"blockStorage":{"enabled":%v}}`, wanted.Enabled))
	return nil
}

// mode is what the request says of EKS Auto Mode.
func (in *updateClusterConfigInput) mode() autoMode {
	return modeOf(in.ComputeConfig, in.StorageConfig, in.KubernetesNetworkConfig)
}

func modeOf(compute *computeConfig, storage *storageConfig, network *networkConfig) autoMode {
	m := autoMode{compute: compute}
	if storage != nil {
		m.storage = storage.BlockStorage
	}
	if network != nil {
		m.balance = network.ElasticLoadBalancing
	}
	return m
}

// newCompute is the compute of a cluster that a request makes; nil if it says nothing of EKS Auto Mode.
func (in *createClusterInput) newCompute() (*v1alpha1.ClusterCompute, error) {
	refuse, mode := eksfault.Invalid(in.Name, ""), in.mode()
	if !mode.asked() {
		return nil, nil //nolint:nilnil // nothing is asked for
	}
	wanted, err := mode.read(nil, refuse)
	if err != nil || !wanted.Enabled {
		return nil, err // as a cluster that says nothing of it
	}
	if eksresource.Deref(in.BootstrapSelfManagedAddons, true) {
		return nil, refuse("When EKS Auto Mode is enabled, bootstrapSelfManagedAddons must be set to false.")
	}
	if in.AccessConfig == nil || in.AccessConfig.AuthenticationMode == "" || in.AccessConfig.AuthenticationMode == string(v1alpha1.AuthenticationConfigMap) {
		return nil, refuse("When EKS Auto Mode is enabled, authenticationMode must be set to API or API_AND_CONFIG_MAP.")
	}
	return wanted, nil
}

// mode is what the request says of EKS Auto Mode.
func (in *createClusterInput) mode() autoMode {
	return modeOf(in.ComputeConfig, in.StorageConfig, in.KubernetesNetworkConfig)
}

// poolsOf reads the names of node pools.
func poolsOf(names []string, refuse eksfault.Refuse) (pools []v1alpha1.NodePoolName, err error) {
	for _, name := range names {
		pool := v1alpha1.NodePoolName(name)
		if !slices.Contains(v1alpha1.NodePoolNames(), pool) || slices.Contains(pools, pool) {
			return nil, refuse("The nodePools %q are not valid: they are general-purpose and system, each once at most", names)
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

// setCompute sets the compute of a cluster that a request makes.
func (in *createClusterInput) setCompute(c *v1alpha1.Cluster) (err error) {
	if c.Spec.Compute, err = in.newCompute(); err == nil && c.Spec.Compute.On() {
		c.Spec.BootstrapSelfManagedAddons = nil // nodes of EKS Auto Mode bring DNS along; here it is CoreDNS
	}
	return err
}
