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
}

func (a *API) updateClusterConfig() awsfront.Spec[updateClusterConfigInput, change.Output] {
	return awsfront.Spec[updateClusterConfigInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateClusterConfigInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.Name)
			if err != nil {
				return nil, err
			}
			// The condition keys are those of CreateCluster, for the fields that the request has.
			same := createClusterInput{Logging: in.Logging, UpgradePolicy: in.UpgradePolicy, DeletionProtection: in.DeletionProtection}
			if in.ResourcesVPCConfig != nil {
				same.ResourcesVPCConfig = *in.ResourcesVPCConfig
			}
			if in.AccessConfig != nil {
				same.AccessConfig = &accessConfig{AuthenticationMode: in.AccessConfig.AuthenticationMode}
			}
			maps.Copy(targets[0].Conditions, same.conditions())
			return targets, nil
		},
		Do: a.doUpdateClusterConfig,
	}
}

func (a *API) doUpdateClusterConfig(ctx context.Context, call *awsfront.Call, in *updateClusterConfigInput) (*change.Output, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.Name)()
	of, err := a.store.Cluster(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	again, err := change.Repeated(ctx, a.store.Management, sent, of, nil)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return change.Answer(again), nil
	}
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return nil, eksfault.New(eksfault.InUse, in.Name, "", "Cluster %s is not in ACTIVE status: it is %s", in.Name, status)
	}
	wanted, err := in.planned(of)
	if err != nil {
		return nil, err
	}
	if groups := wanted.Change.SecurityGroups; groups != nil {
		if err := vpcconfig.CheckGroups(ctx, a.store.Management, of.Status.VPCID, groups.IDs); err != nil {
			return nil, err
		}
	}
	return change.Accept(ctx, a.store.Management, sent, *wanted)
}

// planned is the change that a request asks for: one, and of one type.
func (in *updateClusterConfigInput) planned(of *v1alpha1.Cluster) (*change.Plan, error) {
	refuse := eksfault.Invalid(in.Name, "")
	var all []func(*change.Plan) error
	if vpc := in.ResourcesVPCConfig; vpc != nil && vpc.SecurityGroupIDs != nil {
		all = append(all, func(p *change.Plan) error { return in.groups(p, refuse) })
	}
	if vpc := in.ResourcesVPCConfig; vpc != nil && (vpc.SecurityGroupIDs == nil || vpc.EndpointPublicAccess != nil || vpc.EndpointPrivateAccess != nil || len(vpc.PublicAccessCIDRs) > 0) {
		all = append(all, func(p *change.Plan) error { return in.endpoint(p, refuse) })
	}
	if in.Logging != nil {
		all = append(all, func(p *change.Plan) error { return in.logging(p, refuse) })
	}
	if in.AccessConfig != nil {
		all = append(all, func(p *change.Plan) error { return in.access(p, refuse) })
	}
	if in.UpgradePolicy != nil {
		all = append(all, func(p *change.Plan) error { return in.support(p, refuse) })
	}
	if in.DeletionProtection != nil {
		all = append(all, func(p *change.Plan) error {
			p.Type, p.Change.DeletionProtection = v1alpha1.UpdateDeletionProtection, in.DeletionProtection
			p.Param("DeletionProtection", fmt.Sprint(*in.DeletionProtection))
			if of.Spec.DeletionProtection == *in.DeletionProtection {
				return refuse("No changes needed: deletionProtection is %v already", *in.DeletionProtection)
			}
			return nil
		})
	}
	switch len(all) {
	case 0:
		return nil, refuse("The type for cluster update was not provided.")
	case 1:
	default:
		return nil, refuse("Only one type of update can be allowed.")
	}
	p := &change.Plan{Of: of}
	return p, all[0](p)
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
