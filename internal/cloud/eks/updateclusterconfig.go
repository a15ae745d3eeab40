// SPDX-License-Identifier: Apache-2.0

package eks

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
)

type updateClusterConfigInput struct {
	Name, ClientRequestToken string
	ResourcesVPCConfig       *vpcRequest
	Logging                  *logging
	AccessConfig             *struct{ AuthenticationMode string }
	UpgradePolicy            *upgradePolicy
	DeletionProtection       *bool
}

func (a *api) updateClusterConfig() awsfront.Spec[updateClusterConfigInput, updateOutput] {
	return awsfront.Spec[updateClusterConfigInput, updateOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateClusterConfigInput) ([]awsfront.Target, error) {
			targets, err := a.aboutCluster(ctx, call, in.Name)
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

func (a *api) doUpdateClusterConfig(ctx context.Context, call *awsfront.Call, in *updateClusterConfigInput) (*updateOutput, error) {
	sent, err := tokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.locks.Hold(in.Name)()
	of, err := a.cluster(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	again, err := a.repeated(ctx, sent, of, nil)
	if err != nil {
		return nil, err
	}
	if again != nil {
		return &updateOutput{showUpdate(again)}, nil
	}
	if status, _ := clusterStatus(of); status != active {
		return nil, fault(inUse, in.Name, "", "Cluster %s is not in ACTIVE status: it is %s", in.Name, status)
	}
	wanted, err := in.planned(of)
	if err != nil {
		return nil, err
	}
	if groups := wanted.change.SecurityGroups; groups != nil {
		if err := a.groupsThere(ctx, of.Status.VPCID, groups.IDs); err != nil {
			return nil, err
		}
	}
	return a.accept(ctx, sent, *wanted)
}

// planned is the change that a request asks for: one, and of one type.
func (in *updateClusterConfigInput) planned(of *v1alpha1.Cluster) (*planned, error) {
	refuse := func(format string, args ...any) error {
		return fault(invalidParameter, in.Name, "", format, args...)
	}
	var all []func(*planned) error
	if vpc := in.ResourcesVPCConfig; vpc != nil && vpc.SecurityGroupIDs != nil {
		all = append(all, func(p *planned) error { return in.groups(p, refuse) })
	}
	if vpc := in.ResourcesVPCConfig; vpc != nil && (vpc.SecurityGroupIDs == nil || vpc.EndpointPublicAccess != nil || vpc.EndpointPrivateAccess != nil || len(vpc.PublicAccessCIDRs) > 0) {
		all = append(all, func(p *planned) error { return in.endpoint(p, refuse) })
	}
	if in.Logging != nil {
		all = append(all, func(p *planned) error { return in.logging(p, refuse) })
	}
	if in.AccessConfig != nil {
		all = append(all, func(p *planned) error { return in.access(p, refuse) })
	}
	if in.UpgradePolicy != nil {
		all = append(all, func(p *planned) error { return in.support(p, refuse) })
	}
	if in.DeletionProtection != nil {
		all = append(all, func(p *planned) error {
			p.kind, p.change.DeletionProtection = v1alpha1.UpdateDeletionProtection, in.DeletionProtection
			p.param("DeletionProtection", fmt.Sprint(*in.DeletionProtection))
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
	p := &planned{of: of}
	return p, all[0](p)
}

func (p *planned) param(kind, value string) {
	p.params = append(p.params, v1alpha1.UpdateParam{Type: kind, Value: value})
}

type refusal func(format string, args ...any) error

// endpoint switches the endpoints: a record, as when a cluster is made.
func (in *updateClusterConfigInput) endpoint(p *planned, refuse refusal) error {
	asked, is := in.ResourcesVPCConfig, p.of.Spec.EKS.Endpoint
	publicly, privately := deref(is.PublicAccess, true), deref(is.PrivateAccess, false)
	wantPublic, wantPrivate := deref(asked.EndpointPublicAccess, publicly), deref(asked.EndpointPrivateAccess, privately)
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
	p.kind = v1alpha1.UpdateEndpointAccess
	p.change.Endpoint = &v1alpha1.ClusterEKSEndpoint{PublicAccess: asked.EndpointPublicAccess, PrivateAccess: asked.EndpointPrivateAccess}
	p.param("EndpointPublicAccess", fmt.Sprint(wantPublic))
	p.param("EndpointPrivateAccess", fmt.Sprint(wantPrivate))
	return nil
}

// groups are other security groups of the API server's addresses. An empty list leaves the cluster its own group alone.
func (in *updateClusterConfigInput) groups(p *planned, refuse refusal) error {
	asked := in.ResourcesVPCConfig
	is, wanted := slices.Sorted(slices.Values(p.of.Spec.SecurityGroupIDs)), slices.Sorted(slices.Values(asked.SecurityGroupIDs))
	switch {
	case len(asked.SubnetIDs) > 0:
		return refuse("Muster's clusters keep their subnets: leave subnetIds %v out", asked.SubnetIDs)
	case len(wanted) > v1alpha1.MaxClusterSecurityGroups:
		return refuse("A cluster has %d securityGroupIds at most, not %d", v1alpha1.MaxClusterSecurityGroups, len(wanted))
	case slices.Equal(is, wanted):
		return refuse("Cluster is already at the desired configuration with securityGroupIds: %v", is)
	}
	p.kind, p.change.SecurityGroups = v1alpha1.UpdateVPCConfig, &v1alpha1.UpdateSecurityGroups{IDs: asked.SecurityGroupIDs}
	p.param("SecurityGroups", strings.Join(asked.SecurityGroupIDs, ","))
	return nil
}

// logging switches logs: a record, as when a cluster is made.
func (in *updateClusterConfigInput) logging(p *planned, refuse refusal) error {
	types, err := switched(p.of.Spec.EKS.LoggingTypes, *in.Logging)
	if err != nil {
		return err
	}
	if now, _ := switched(p.of.Spec.EKS.LoggingTypes, logging{}); equality.Semantic.DeepEqual(now, types) {
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
		shown.ClusterLogging = append(shown.ClusterLogging, setup{s.Types, deref(s.Enabled, false)})
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	p.kind, p.change.Logging = v1alpha1.UpdateLogging, &v1alpha1.UpdateLoggingTypes{Types: types}
	p.param("ClusterLogging", string(text))
	return nil
}

// access changes the sources that map identities to users, which goes one way.
func (in *updateClusterConfigInput) access(p *planned, refuse refusal) error {
	modes, is, asked := v1alpha1.AuthenticationModes(), p.of.Spec.AccessConfig.AuthenticationMode, v1alpha1.AuthenticationMode(in.AccessConfig.AuthenticationMode)
	switch {
	case !slices.Contains(modes, asked):
		return refuse("authenticationMode %.40q is not known: it must be one of %v", asked, modes)
	case asked == is:
		return refuse("No changes needed: authenticationMode is %s already", is)
	case slices.Index(modes, asked) < slices.Index(modes, is):
		return refuse("Unsupported authentication mode update from %s to %s", is, asked)
	}
	p.kind, p.change.AuthenticationMode = v1alpha1.UpdateAccessConfig, asked
	p.param("AuthenticationMode", string(asked))
	return nil
}

// support changes the support of old versions: a record, as when a cluster is made.
func (in *updateClusterConfigInput) support(p *planned, refuse refusal) error {
	is, asked := p.of.Spec.EKS.SupportType, in.UpgradePolicy.SupportType
	if is == "" {
		is = extended
	}
	switch {
	case asked != extended && asked != standard:
		return refuse("supportType %.40q is not known: it must be STANDARD or EXTENDED", asked)
	case asked == is:
		return refuse("No changes needed: supportType is %s already", is)
	}
	p.kind, p.change.SupportType = v1alpha1.UpdateUpgradePolicy, asked
	p.param("UpgradePolicy", asked)
	return nil
}
