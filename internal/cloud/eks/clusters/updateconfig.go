// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/componentconfig"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
)

type updateClusterConfigInput struct {
	Name, ClientRequestToken string
	ResourcesVPCConfig       *vpcRequest
	Logging                  *logging
	AccessConfig             *struct{ AuthenticationMode string }
	UpgradePolicy            *upgradePolicy
	DeletionProtection       *bool
	ZonalShiftConfig         *onOff
	ComputeConfig            *computeConfig
	StorageConfig            *storageConfig
	KubernetesNetworkConfig  *networkConfig

	componentconfig.Request
}

func (a *API) updateClusterConfig() awsfront.Spec[updateClusterConfigInput, change.Output] {
	return awsfront.Spec[updateClusterConfigInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateClusterConfigInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.Name)
			if err != nil {
				return nil, err
			}
			// The condition keys are those of CreateCluster, for the fields that the request has.
			same := createClusterInput{
				Logging: in.Logging, UpgradePolicy: in.UpgradePolicy, DeletionProtection: in.DeletionProtection, ZonalShiftConfig: in.ZonalShiftConfig,
				ComputeConfig: in.ComputeConfig, StorageConfig: in.StorageConfig, KubernetesNetworkConfig: in.KubernetesNetworkConfig,
			}
			if in.ResourcesVPCConfig != nil {
				same.ResourcesVPCConfig = *in.ResourcesVPCConfig
			}
			if in.AccessConfig != nil {
				same.AccessConfig = &accessConfig{AuthenticationMode: in.AccessConfig.AuthenticationMode}
			}
			maps.Copy(targets[0].Conditions, same.conditions())
			nodes, err := in.mode().passed(ctx, a, call, in.Name)
			return append(targets, nodes...), err
		},
		Do: a.doUpdateClusterConfig,
	}
}

func (a *API) doUpdateClusterConfig(ctx context.Context, call *awsfront.Call, in *updateClusterConfigInput) (*change.Output, error) {
	return change.Answer(change.Make(ctx, a.store, call, in.Name, in.ClientRequestToken, change.OfCluster(a.store, in.Name), func(p *change.Plan) error {
		if err := checkActive(p.Of); err != nil {
			return err
		}
		if err := in.plan(p); err != nil {
			return err
		}
		if groups := p.Change.SecurityGroups; groups != nil {
			return vpcconfig.CheckGroups(ctx, a.store.Management, p.Of.Status.VPCID, groups.IDs)
		}
		if compute := p.Change.Compute; compute != nil {
			wanted, refuse := p.Of.Spec, eksfault.Invalid(in.Name, "")
			wanted.Compute = compute
			if err := a.checkNodeRole(ctx, compute, refuse); err != nil {
				return err
			}
			if err := a.checkCompute(ctx, p.Of, wanted, refuse); err != nil {
				return err
			}
		}
		return a.checkNodePorts(ctx, p)
	}))
}

// checkActive refuses a change of a cluster that is not served yet, or is being deleted.
func checkActive(of *v1alpha1.Cluster) error {
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return eksfault.New(eksfault.InUse, of.Spec.Name, "", "Cluster %s is not in ACTIVE status: it is %s", of.Spec.Name, status)
	}
	return nil
}

// plan is the change that a request asks for: one, and of one type.
func (in *updateClusterConfigInput) plan(p *change.Plan) error {
	refuse := eksfault.Invalid(in.Name, "")
	var all []func(*change.Plan, eksfault.Refuse) error
	if vpc := in.ResourcesVPCConfig; vpc != nil && vpc.SecurityGroupIDs != nil {
		all = append(all, in.groups)
	}
	if vpc := in.ResourcesVPCConfig; vpc != nil && (vpc.SecurityGroupIDs == nil || vpc.EndpointPublicAccess != nil || vpc.EndpointPrivateAccess != nil || len(vpc.PublicAccessCIDRs) > 0) {
		all = append(all, in.endpoint)
	}
	for _, part := range []struct {
		asked bool
		plan  func(*change.Plan, eksfault.Refuse) error
	}{
		{in.Logging != nil, in.logging},
		{in.AccessConfig != nil, in.access},
		{in.UpgradePolicy != nil, in.support},
		{in.DeletionProtection != nil, in.protection},
		{in.ZonalShiftConfig != nil, in.zonalShift},
		{in.mode().asked(), in.autoMode},
		{in.Asked(), in.components},
	} {
		if part.asked {
			all = append(all, part.plan)
		}
	}
	switch len(all) {
	case 0:
		return refuse("The type for cluster update was not provided.")
	case 1:
		return all[0](p, refuse)
	}
	return refuse("Only one type of update can be allowed.")
}

// protection switches the protection from deletion.
func (in *updateClusterConfigInput) protection(p *change.Plan, refuse eksfault.Refuse) error {
	p.Type, p.Change.DeletionProtection = v1alpha1.UpdateDeletionProtection, in.DeletionProtection
	p.Param("DeletionProtection", fmt.Sprint(*in.DeletionProtection))
	if p.Of.Spec.DeletionProtection == *in.DeletionProtection {
		return refuse("No changes needed: deletionProtection is %v already", *in.DeletionProtection)
	}
	return nil
}

// zonalShift switches zonal shifts. While a shift is active they stay.
func (in *updateClusterConfigInput) zonalShift(p *change.Plan, refuse eksfault.Refuse) error {
	is := p.Of.Spec.ZonalShift.On()
	wanted := in.ZonalShiftConfig.on(is)
	switch {
	case wanted == is:
		return refuse("No changes needed: zonalShiftConfig.enabled is %v already", is)
	case !wanted && len(p.Of.Status.ShiftedZones) > 0:
		return refuse("A zonal shift moves cluster %s away from %s: cancel it before zonalShiftConfig is disabled", p.Of.Spec.Name, strings.Join(p.Of.Status.ShiftedZones, ", "))
	}
	p.Type, p.Change.ZonalShiftEnabled = v1alpha1.UpdateZonalShiftConfig, &wanted
	p.Param("ZonalShiftConfig", fmt.Sprintf(`{"enabled":%v}`, wanted))
	return nil
}

// endpoint switches the endpoints: a record, as when a cluster is made.
func (in *updateClusterConfigInput) endpoint(p *change.Plan, refuse eksfault.Refuse) error {
	asked, is := in.ResourcesVPCConfig, p.Of.Spec.EKS.Endpoint
	publicly, privately := eksresource.Deref(is.PublicAccess, true), eksresource.Deref(is.PrivateAccess, false)
	wantPublic, wantPrivate := eksresource.Deref(asked.EndpointPublicAccess, publicly), eksresource.Deref(asked.EndpointPrivateAccess, privately)
	switch {
	case len(asked.SubnetIDs) > 0:
		return refuse("Muster's clusters keep their subnets: leave subnetIds %v out", asked.SubnetIDs)
	case len(asked.PublicAccessCIDRs) > 0 && !slices.Equal(asked.PublicAccessCIDRs, []string{anywhere}):
		return refuse("Muster's public endpoint is on the host's loopback address and has no publicAccessCidrs: leave %v out", asked.PublicAccessCIDRs)
	case !wantPublic && !wantPrivate:
		return refuse("Private and public endpoint access cannot be false")
	case wantPublic == publicly && wantPrivate == privately:
		return refuse("Cluster is already at the desired configuration with endpointPrivateAccess: %v , endpointPublicAccess: %v, and Public Endpoint Restrictions: [%s]", privately, publicly, anywhere)
	}
	p.Type = v1alpha1.UpdateEndpointAccess
	p.Change.Endpoint = &v1alpha1.ClusterEKSEndpoint{PublicAccess: asked.EndpointPublicAccess, PrivateAccess: asked.EndpointPrivateAccess}
	p.Param("EndpointPublicAccess", fmt.Sprint(wantPublic))
	p.Param("EndpointPrivateAccess", fmt.Sprint(wantPrivate))
	return nil
}

// groups are other security groups of the API server's addresses. An empty list leaves the cluster its own group alone.
func (in *updateClusterConfigInput) groups(p *change.Plan, refuse eksfault.Refuse) error {
	asked := in.ResourcesVPCConfig
	is, wanted := slices.Sorted(slices.Values(p.Of.Spec.SecurityGroupIDs)), slices.Sorted(slices.Values(asked.SecurityGroupIDs))
	switch {
	case len(asked.SubnetIDs) > 0:
		return refuse("Muster's clusters keep their subnets: leave subnetIds %v out", asked.SubnetIDs)
	case len(wanted) > v1alpha1.MaxClusterSecurityGroups:
		return refuse("A cluster has %d securityGroupIds at most, not %d", v1alpha1.MaxClusterSecurityGroups, len(wanted))
	case slices.Equal(is, wanted):
		return refuse("Cluster is already at the desired configuration with securityGroupIds: %v", is)
	}
	p.Type, p.Change.SecurityGroups = v1alpha1.UpdateVPCConfig, &v1alpha1.UpdateSecurityGroups{IDs: asked.SecurityGroupIDs}
	p.Param("SecurityGroups", strings.Join(asked.SecurityGroupIDs, ","))
	return nil
}

// logging switches logs: a record, as when a cluster is made.
func (in *updateClusterConfigInput) logging(p *change.Plan, refuse eksfault.Refuse) error {
	types, err := switched(p.Of.Spec.EKS.LoggingTypes, *in.Logging)
	if err != nil {
		return err
	}
	if now, _ := switched(p.Of.Spec.EKS.LoggingTypes, logging{}); equality.Semantic.DeepEqual(now, types) {
		return refuse("No changes needed for the logging config provided")
	}
	type setup struct {
		Types   []string `json:"types"`
		Enabled bool     `json:"enabled"`
	}
	shown := struct {
		ClusterLogging []setup `json:"clusterLogging"`
	}{}
	for _, s := range in.Logging.ClusterLogging {
		shown.ClusterLogging = append(shown.ClusterLogging, setup{s.Types, eksresource.Deref(s.Enabled, false)})
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	p.Type, p.Change.Logging = v1alpha1.UpdateLogging, &v1alpha1.UpdateLoggingTypes{Types: types}
	p.Param("ClusterLogging", string(text))
	return nil
}

// access changes the sources that map identities to users, which goes one way.
func (in *updateClusterConfigInput) access(p *change.Plan, refuse eksfault.Refuse) error {
	modes, is, asked := v1alpha1.AuthenticationModes(), p.Of.Spec.AccessConfig.AuthenticationMode, v1alpha1.AuthenticationMode(in.AccessConfig.AuthenticationMode)
	switch {
	case !slices.Contains(modes, asked):
		return refuse("authenticationMode %.40q is not known: it must be one of %v", asked, modes)
	case asked == is:
		return refuse("No changes needed: authenticationMode is %s already", is)
	case slices.Index(modes, asked) < slices.Index(modes, is):
		return refuse("Unsupported authentication mode update from %s to %s", is, asked)
	}
	p.Type, p.Change.AuthenticationMode = v1alpha1.UpdateAccessConfig, asked
	p.Param("AuthenticationMode", string(asked))
	return nil
}

// support changes the support of old versions: a record, as when a cluster is made.
func (in *updateClusterConfigInput) support(p *change.Plan, refuse eksfault.Refuse) error {
	is, asked := p.Of.Spec.EKS.SupportType, in.UpgradePolicy.SupportType
	if is == "" {
		is = extended
	}
	switch {
	case asked != extended && asked != standard:
		return refuse("supportType %.40q is not known: it must be STANDARD or EXTENDED", asked)
	case asked == is:
		return refuse("No changes needed: supportType is %s already", is)
	}
	p.Type, p.Change.SupportType = v1alpha1.UpdateUpgradePolicy, asked
	p.Param("UpgradePolicy", asked)
	return nil
}
