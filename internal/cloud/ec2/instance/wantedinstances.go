// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/keypair"
	"muster.dev/muster/internal/cloud/ec2/template"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/machine/launchdata"
)

// maxInstances is how many instances one request may make.
const maxInstances = 100

// wantedInstances is what a request asks for, checked.
type wantedInstances struct {
	machine *v1alpha1.Machine
	subnet  *v1alpha1.Subnet
	// pods is how many pods each has addresses of a subnet for; 0 if they have none of it. podSubnets are the subnets
	// for them, if it is not its own.
	pods       int
	podSubnets []string
}

// wantedInstances checks a request and puts together the machine that it asks for.
func (a *Actions) wantedInstances(ctx context.Context, in *runInstancesInput) (*wantedInstances, error) {
	data, err := a.launchData(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := a.check(ctx, in, data); err != nil {
		return nil, err
	}
	if err := data.Check(); err != nil {
		return nil, err
	}
	if err := a.checkKey(ctx, data.KeyName); err != nil {
		return nil, err
	}
	subnet, err := a.launchSubnet(ctx, in, data)
	if err != nil {
		return nil, err
	}
	raw, err := base64.StdEncoding.DecodeString(data.UserData)
	if err != nil {
		return nil, awsfault.Errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	profile, err := a.launchProfile(ctx, data)
	if err != nil {
		return nil, err
	}
	cluster, err := a.clusterOf(ctx, raw, subnet.Spec.VPCID)
	if err != nil {
		return nil, err
	}
	tags, err := awstag.Read(ec2resource.Service, data.InstanceTags())
	if err != nil {
		return nil, err
	}
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Finalizers: []string{v1alpha1.FinalizerMachine}},
		Spec: v1alpha1.MachineSpec{
			Provider: v1alpha1.DefaultProvider, SubnetID: v1alpha1.SubnetID(subnet.Name), InstanceType: data.InstanceType, DiskSize: data.DiskSize(), ImageID: data.ImageID,
			KeyName: data.KeyName, UserData: raw, Tags: awsresource.KeptTags(tags), DisableAPITermination: data.DisableAPITermination != nil && *data.DisableAPITermination,
		},
	}
	keep(m, in, data)
	if profile != nil {
		m.Spec.InstanceProfile = profile.Spec.Name
	}
	if o := data.MetadataOptions; o != nil && o.HTTPPutResponseHopLimit != nil {
		m.Spec.MetadataOptions = &v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: int32(*o.HTTPPutResponseHopLimit)} //nolint:gosec // G115: it is from 1 to 64
	}
	if m.Spec.SecurityGroupIDs, err = a.launchGroups(ctx, in, data, subnet); err != nil {
		return nil, err
	}
	wanted := &wantedInstances{machine: m, subnet: subnet}
	if cluster != nil {
		m.Spec.ClusterName = cluster.Spec.Name
		if podsInSubnets(cluster, subnet) {
			wanted.pods = launchdata.Pods(raw, data.InstanceType)
			for _, id := range cluster.Spec.Network.PodSubnetIDs {
				wanted.podSubnets = append(wanted.podSubnets, string(id))
			}
		}
	}
	return wanted, nil
}

// launchData is what the request says, and where it says nothing, what its launch template does. The security groups of
// a template are those of an interface that the request describes without any.
func (a *Actions) launchData(ctx context.Context, in *runInstancesInput) (launchtemplate.Data, error) {
	if in.LaunchTemplate == nil || in.refused != nil {
		return in.Data, in.refused
	}
	_, version, err := findVersion(ctx, a.templates, in.LaunchTemplate)
	if err != nil {
		return launchtemplate.Data{}, err
	}
	of, err := launchtemplate.Read(*version)
	if err != nil {
		return launchtemplate.Data{}, ec2resource.Away(err)
	}
	data := in.Over(of)
	if len(in.NetworkInterfaces) == 1 && len(in.SecurityGroupIDs) == 0 {
		groups := data.GroupIDs()
		if len(groups) == 0 {
			groups = of.GroupIDs()
		}
		data.NetworkInterfaces, data.SecurityGroupIDs = slices.Clone(data.NetworkInterfaces), nil
		data.NetworkInterfaces[0].Groups = groups
	}
	return data, nil
}

// findVersion is a launch template and its version that a request names.
func findVersion(ctx context.Context, templates *template.Actions, named *versionOfTemplate) (*v1alpha1.LaunchTemplate, *v1alpha1.LaunchTemplateVersion, error) {
	template, err := templates.Template(ctx, template.NamedTemplate{LaunchTemplateID: named.LaunchTemplateID, LaunchTemplateName: named.LaunchTemplateName})
	if err != nil {
		return nil, nil, err
	}
	version, err := launchtemplate.Find(template, cmp.Or(named.Version, launchtemplate.Default))
	return template, version, err
}

// check refuses what no machine can be.
func (a *Actions) check(ctx context.Context, in *runInstancesInput, data launchtemplate.Data) error {
	switch {
	case in.MinCount == nil || in.MaxCount == nil || *in.MinCount < 1 || *in.MaxCount < *in.MinCount:
		return awsfault.Errorf(ec2resource.InvalidParameter, "Invalid value for instanceCount: MinCount must be at least 1 and at most MaxCount")
	case *in.MaxCount > maxInstances:
		return awsfault.Errorf("ResourceCountExceeded", "You have requested more instances (%d) than Muster launches by one request: at most %d", *in.MaxCount, maxInstances)
	case data.ImageID == "":
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter ImageId")
	case data.InstanceType == "":
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter InstanceType: Muster has no m1.small, which is EC2's default")
	case !a.ec2.LocalMachines:
		return awsfault.Errorf("Unsupported", "This service runs without root and can make no machines: start it with root")
	case in.PrivateIPAddress != "":
		return awsfault.Errorf("Unsupported", "Muster chooses the addresses of machines: leave PrivateIpAddress out")
	case len(data.NetworkInterfaces) > 0 && (in.SubnetID != "" || len(in.SecurityGroups) > 0):
		return awsfault.Errorf(ec2resource.InvalidCombination, "Network interfaces and an instance-level subnet ID or security groups may not be specified on the same request")
	}
	if err := a.images.Exists(ctx, data.ImageID); err != nil {
		return err
	}
	if err := in.checkMarket(data); err != nil {
		return err
	}
	if missing := a.ec2.Unbuilt(ami.Release(data.ImageID)); missing != "" {
		return awsfault.Errorf("Unsupported", "%s", missing)
	}
	return ec2resource.Only("InstanceInitiatedShutdownBehavior", in.InstanceInitiatedShutdownBehavior, "terminate")
}

// launchSubnet is the subnet that the request names, or the first of the default VPC, in the zone that it names.
func (a *Actions) launchSubnet(ctx context.Context, in *runInstancesInput, data launchtemplate.Data) (*v1alpha1.Subnet, error) {
	id, zone := in.SubnetID, ""
	for _, n := range data.NetworkInterfaces {
		id = cmp.Or(n.SubnetID, id)
	}
	if p := data.Placement; p != nil && p.AvailabilityZone != "" {
		zone = p.AvailabilityZone
		if _, err := a.ec2.Place.Zone(zone); err != nil {
			return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Invalid availability zone: [%.64s]", zone)
		}
	}
	if id != "" {
		subnet := &v1alpha1.Subnet{}
		if err := a.ec2.Get(ctx, ec2id.Subnet, id, subnet); err != nil {
			return nil, err
		}
		if zone != "" && subnet.Spec.AvailabilityZone != zone {
			return nil, awsfault.Errorf(ec2resource.InvalidCombination, "The availability zone %s is not that of subnet %s, which is in %s", zone, id, subnet.Spec.AvailabilityZone)
		}
		return subnet, nil
	}
	var vpcs v1alpha1.VPCList
	var subnets v1alpha1.SubnetList
	if err := a.ec2.List(ctx, &vpcs); err != nil {
		return nil, err
	}
	if err := a.ec2.List(ctx, &subnets); err != nil {
		return nil, err
	}
	slices.SortFunc(subnets.Items, func(x, y v1alpha1.Subnet) int {
		return cmp.Or(cmp.Compare(x.Spec.AvailabilityZone, y.Spec.AvailabilityZone), cmp.Compare(x.Name, y.Name))
	})
	for i := range subnets.Items {
		s := &subnets.Items[i]
		isDefault := slices.ContainsFunc(vpcs.Items, func(v v1alpha1.VPC) bool { return v.Spec.IsDefault && v.Name == s.Spec.VPCID })
		if isDefault && s.DeletionTimestamp.IsZero() && (zone == "" || s.Spec.AvailabilityZone == zone) {
			return s, nil
		}
	}
	return nil, awsfault.Errorf("VPCIdNotSpecified", "No default VPC with a subnet for this user: name a subnet.")
}

// launchProfile is the instance profile that the request names; nil if it names none.
func (a *Actions) launchProfile(ctx context.Context, data launchtemplate.Data) (*v1alpha1.IAMInstanceProfile, error) {
	if data.IAMInstanceProfile == nil {
		return nil, nil //nolint:nilnil // an instance need not have one
	}
	named := *data.IAMInstanceProfile
	var all v1alpha1.IAMInstanceProfileList
	if err := a.ec2.List(ctx, &all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if p := &all.Items[i]; named.ARN != "" && named.ARN == p.Spec.ARN || named.Name != "" && named.Name == p.Spec.Name {
			return p, nil
		}
	}
	if named.ARN != "" {
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.300s) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN", named.ARN)
	}
	return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.128s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", named.Name)
}

// checkKey refuses a key pair that is not there.
func (a *Actions) checkKey(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	all, err := a.keypairs.KeyPairs().List(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(r ec2resource.Record[keypair.KeptKeyPair]) bool { return r.Data.Name == name }) {
		return awsfault.Errorf("InvalidKeyPair.NotFound", "The key pair '%.255s' does not exist", name)
	}
	return nil
}
