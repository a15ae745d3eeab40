// SPDX-License-Identifier: Apache-2.0

package launchtemplate

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/awstag"
)

const group = "sg-0123456789abcdef0"

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// What a request has, an answer has: one struct fits both shapes.
func TestDataFitsTheTable(t *testing.T) {
	table := awstable.Service("ec2")
	for _, operation := range []struct {
		name, member string
		out          bool
	}{{"CreateLaunchTemplate", "LaunchTemplateData", false}, {"DescribeLaunchTemplateVersions", "LaunchTemplateVersions", true}} {
		shape := table.Operation(operation.name).Input
		if operation.out {
			shape = table.Operation(operation.name).Output
		}
		for _, m := range shape.Members {
			if m.Name != operation.member {
				continue
			}
			data := m.Shape
			if operation.out {
				for _, inner := range data.Item.Members {
					if inner.Name == "LaunchTemplateData" {
						data = inner.Shape
					}
				}
			}
			if err := data.Check(reflect.TypeFor[Data]()); err != nil {
				t.Error(err)
			}
		}
	}
}

// volume is data with a volume of a size in GiB, and root is data with the volume that is a machine's disk.
func volume(device string, size int64) Data {
	return Data{BlockDeviceMappings: []BlockDeviceMapping{{DeviceName: device, Ebs: &Ebs{VolumeSize: &size}}}}
}

func root(size int64) Data { return volume(ami.RootDeviceName, size) }

// The root device is the machine's disk, and no other volume is there.
func TestDiskSize(t *testing.T) {
	both := volume("/dev/xvdb", 100)
	both.BlockDeviceMappings = append(both.BlockDeviceMappings, root(30).BlockDeviceMappings...)
	for name, test := range map[string]struct {
		data Data
		want int32
	}{
		"nothing":          {Data{}, 0},
		"the root":         {root(30), 30},
		"another":          {volume("/dev/xvdb", 30), 0},
		"both":             {both, 30},
		"of no size":       {Data{BlockDeviceMappings: []BlockDeviceMapping{{DeviceName: "/dev/xvda", Ebs: &Ebs{VolumeType: "gp3"}}}}, 0},
		"no volume":        {Data{BlockDeviceMappings: []BlockDeviceMapping{{DeviceName: "/dev/xvda"}}}, 0},
		"kept and small":   {root(1), v1alpha1.MinDisk},
		"kept and too big": {root(1 << 40), v1alpha1.MaxDisk},
	} {
		if got := test.data.DiskSize(); got != test.want {
			t.Errorf("%s: %d GiB, want %d", name, got, test.want)
		}
	}
}

// market is data with market options.
func market(kind string, spot SpotOptions) Data {
	return Data{InstanceMarketOptions: &MarketOptions{MarketType: kind, SpotOptions: &spot}}
}

func TestCheck(t *testing.T) {
	on, off := new(true), new(false)
	for name, test := range map[string]struct {
		data Data
		want string // the code and a part of the message
	}{
		"nothing": {Data{}, ""},
		"much": {Data{
			InstanceType: "t3.small", ImageID: "ami-0123456789abcdef0", UserData: encoded("#!/bin/sh"), EbsOptimized: on, Monitoring: &Monitoring{on}, KeyName: "k",
			MetadataOptions: &MetadataOptions{HTTPEndpoint: "enabled", HTTPTokens: "required", HTTPPutResponseHopLimit: new(int64(2)), HTTPProtocolIpv6: "disabled", InstanceMetadataTags: "disabled"},
			EnclaveOptions:  &EnclaveOptions{off}, HibernationOptions: &HibernationOptions{off}, Placement: &Placement{Tenancy: "default"},
			NetworkInterfaces: []NetworkInterface{{Groups: []string{group}, DeviceIndex: new(int64(0)), DeleteOnTermination: on, InterfaceType: "interface"}},
			TagSpecifications: []TagSpecification{{"instance", []awstag.Tag{{Key: "a", Value: "b"}}}, {"volume", nil}},
		}, ""},
		"a type":             {Data{InstanceType: "x9.huge"}, "InvalidParameterValue: Invalid value 'x9.huge' for InstanceType: unknown instance type"},
		"an image":           {Data{ImageID: "resolve:ssm:/a"}, "InvalidAMIID.Malformed"},
		"user data":          {Data{UserData: "#!/bin/sh"}, "InvalidUserData.Malformed: Invalid BASE64"},
		"much user data":     {Data{UserData: encoded(strings.Repeat("a", maxUserData+1))}, "User data is limited to 16384 bytes: it has 16385"},
		"enclaves":           {Data{EnclaveOptions: &EnclaveOptions{on}}, "no enclaves"},
		"hibernation":        {Data{HibernationOptions: &HibernationOptions{on}}, "do not hibernate"},
		"no reservation":     {Data{CapacityReservationSpecification: &CapacityReservationSpecification{"none"}}, ""}, // Karpenter's
		"a reservation":      {Data{CapacityReservationSpecification: &CapacityReservationSpecification{"capacity-reservations-only"}}, "there are no capacity reservations"},
		"credits":            {Data{CreditSpecification: &CreditSpecification{"many"}}, "CpuCredits"},
		"a profile":          {Data{IAMInstanceProfile: &InstanceProfile{}}, "InvalidParameterCombination"},
		"a host":             {Data{Placement: &Placement{Tenancy: "dedicated"}}, "Tenancy"},
		"version 1 metadata": {Data{MetadataOptions: &MetadataOptions{HTTPTokens: "optional"}}, "HttpTokens is invalid. Muster has required only"},
		"no metadata":        {Data{MetadataOptions: &MetadataOptions{HTTPEndpoint: "disabled"}}, "HttpEndpoint"},
		"hops":               {Data{MetadataOptions: &MetadataOptions{HTTPPutResponseHopLimit: new(int64(65))}}, "from 1 to 64"},
		"a spot instance":    {market("spot", SpotOptions{MaxPrice: "0.05", SpotInstanceType: "one-time", InstanceInterruptionBehavior: "terminate", ValidUntil: new(time.Now())}), ""},
		"no market type":     {market("", SpotOptions{MaxPrice: "0.05"}), ""}, // EC2 keeps it and refuses launches of it
		"capacity blocks":    {market("capacity-block", SpotOptions{}), "InvalidParameterValue: Value (capacity-block) for parameter InstanceMarketOptions.MarketType is invalid. Muster has spot only"},
		"it comes again":     {market("spot", SpotOptions{SpotInstanceType: "persistent"}), "Value (persistent) for parameter SpotOptions.SpotInstanceType is invalid. Muster has one-time only"},
		"it stops":           {market("spot", SpotOptions{InstanceInterruptionBehavior: "stop"}), "Value (stop) for parameter SpotOptions.InstanceInterruptionBehavior is invalid. Muster has terminate only"},
		"no price":           {market("spot", SpotOptions{MaxPrice: "cheap"}), "Value (cheap) for parameter MaxPrice is invalid. It must be US dollars an hour"},
		"a price of nothing": {market("spot", SpotOptions{MaxPrice: "0"}), "Value (0) for parameter MaxPrice"},
		"not a price":        {market("spot", SpotOptions{MaxPrice: "NaN"}), "Value (NaN) for parameter MaxPrice"},
		"any price":          {market("spot", SpotOptions{MaxPrice: "Inf"}), "Value (Inf) for parameter MaxPrice"},
		"two interfaces":     {Data{NetworkInterfaces: make([]NetworkInterface, 2)}, "Muster's machines have one"},
		"another interface":  {Data{NetworkInterfaces: []NetworkInterface{{DeviceIndex: new(int64(1))}}}, "device index 0"},
		"an efa":             {Data{NetworkInterfaces: []NetworkInterface{{InterfaceType: "efa"}}}, "InterfaceType"},
		"it stays":           {Data{NetworkInterfaces: []NetworkInterface{{DeleteOnTermination: off}}}, "DeleteOnTermination"},
		"a subnet":           {Data{NetworkInterfaces: []NetworkInterface{{SubnetID: "a"}}}, "InvalidSubnetID.Malformed"},
		"a disk":             {root(4), ""},
		"a large disk":       {root(16384), ""},
		"no disk":            {root(0), "Value (0) for parameter VolumeSize"},
		"a disk of petas":    {root(16385), "from 1 to 16384 GiB"},
		"a small disk":       {root(3), "InvalidBlockDeviceMapping"},
		"another small disk": {volume("/dev/xvdb", 1), ""},
		"groups twice":       {Data{SecurityGroupIDs: []string{group}, NetworkInterfaces: make([]NetworkInterface, 1)}, "may not be specified on the same request"},
		"a group":            {Data{SecurityGroupIDs: []string{"default"}}, "InvalidGroupId.Malformed"},
		"many groups":        {Data{SecurityGroupIDs: make([]string, 17)}, "SecurityGroupsPerInterfaceLimitExceeded"},
		"tags of what":       {Data{TagSpecifications: []TagSpecification{{"vpc", nil}}}, "'vpc' is not a valid taggable resource type"},
		"tags twice":         {Data{TagSpecifications: []TagSpecification{{"volume", nil}, {"volume", nil}}}, "two tag specifications"},
		"AWS's tags":         {Data{TagSpecifications: []TagSpecification{{"instance", []awstag.Tag{{Key: "aws:a"}}}}}, "aws:"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.data.Check()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if known := new(awsfault.Error); err != nil && !errors.As(err, &known) {
				t.Errorf("%T is not for the caller", err)
			}
		})
	}
}

func TestKeptAndOver(t *testing.T) {
	source := Data{InstanceType: "t3.small", UserData: encoded("a"), Monitoring: &Monitoring{new(true)}, SecurityGroupIDs: []string{group}}
	kept, err := source.Kept()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Read(v1alpha1.LaunchTemplateVersion{Data: kept}); err != nil || !cmp.Equal(back, source) {
		t.Errorf("%s is read as %+v, %v", kept.Raw, back, err)
	}
	for _, raw := range []string{`{"Colour":"red"}`, `{"InstanceType":1}`, ``} {
		if _, err := Read(v1alpha1.LaunchTemplateVersion{Number: 4, Data: runtime.RawExtension{Raw: []byte(raw)}}); err == nil || !strings.Contains(err.Error(), "version 4") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	got := Data{InstanceType: "m5.large", Monitoring: &Monitoring{new(false)}}.Over(source)
	want := Data{InstanceType: "m5.large", UserData: encoded("a"), Monitoring: &Monitoring{new(false)}, SecurityGroupIDs: []string{group}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func template(versions ...int64) *v1alpha1.LaunchTemplate {
	t := &v1alpha1.LaunchTemplate{Spec: v1alpha1.LaunchTemplateSpec{Name: "web", DefaultVersion: versions[0], LatestVersion: 9}}
	t.Name = "lt-0123456789abcdef0"
	for _, number := range versions {
		t.Spec.Versions = append(t.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: number, Data: runtime.RawExtension{Raw: []byte(`{}`)}})
	}
	return t
}

func TestFind(t *testing.T) {
	of := template(2, 3, 5)
	for version, want := range map[string]int64{"3": 3, Default: 2, Latest: 5} {
		if found, err := Find(of, version); err != nil || found.Number != want {
			t.Errorf("%s is %+v, %v", version, found, err)
		}
	}
	for version, want := range map[string]string{
		"9": "InvalidLaunchTemplateId.VersionNotFound: Could not find the specified version 9 for the launch template with ID lt-0123456789abcdef0.",
		"x": "InvalidParameterValue: Invalid launch template version", "0": "InvalidParameterValue", "-1": "InvalidParameterValue", "": "InvalidParameterValue", "$latest": "InvalidParameterValue",
	} {
		if found, err := Find(of, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v", version, found, err)
		}
	}
	if err := CheckRoom(of, 100); err != nil {
		t.Error(err)
	}
	if err := CheckRoom(of, maxBytes); err == nil || !strings.HasPrefix(err.Error(), "MaxTemplateVersionLimitExceeded: ") || !strings.Contains(err.Error(), "Delete old versions first") {
		t.Errorf("too many bytes: %v", err)
	}
	for _, name := range []string{"ab", "a b c", strings.Repeat("a", 129), ""} {
		if CheckName(name) == nil {
			t.Errorf("%q is a name", name)
		}
	}
	if err := CheckName("web_(2)/x.y-z"); err != nil {
		t.Error(err)
	}
}

func TestForNodeGroup(t *testing.T) {
	of := template(1)
	set := func(data Data) *v1alpha1.LaunchTemplateVersion {
		kept, err := data.Kept()
		if err != nil {
			t.Fatal(err)
		}
		of.Spec.Versions[0].Data = kept
		return &of.Spec.Versions[0]
	}
	got, err := ForNodeGroup(of, set(Data{
		InstanceType: "t3.small", UserData: encoded("#!/bin/sh\n"), MetadataOptions: &MetadataOptions{HTTPTokens: "required", HTTPPutResponseHopLimit: new(int64(2))},
		BlockDeviceMappings: root(30).BlockDeviceMappings,
		NetworkInterfaces:   []NetworkInterface{{Groups: []string{group}}}, TagSpecifications: []TagSpecification{{"volume", nil}, {"instance", []awstag.Tag{{Key: "a", Value: "b"}}}},
	}))
	want := &v1alpha1.NodeGroupLaunchTemplate{
		ID: of.Name, Name: "web", Version: 1, InstanceType: "t3.small", DiskSize: 30, UserData: "#!/bin/sh\n", MetadataOptions: v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: 2},
		SecurityGroupIDs: []string{group}, Tags: v1alpha1.Tags{"a": "b"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := ForNodeGroup(of, set(Data{UserData: encoded("\x1f\x8b\xff")})); err != nil || got.UserData != encoded("\x1f\x8b\xff") {
		t.Errorf("compressed user data is %+v, %v", got, err)
	}
	for want, data := range map[string]Data{
		"should not specify an instance profile":                              {IAMInstanceProfile: &InstanceProfile{Name: "a"}},
		"should not specify a subnet":                                         {NetworkInterfaces: []NetworkInterface{{SubnetID: "subnet-0123456789abcdef0"}}},
		"should not specify an availability zone":                             {Placement: &Placement{AvailabilityZone: "us-east-1a"}},
		"Instance market options are not supported with the launch template.": market("spot", SpotOptions{}),
		"the image ami-0123456789abcdef0. Muster's node groups":               {ImageID: "ami-0123456789abcdef0"},
	} {
		refusal := new(Refusal)
		if _, err := ForNodeGroup(of, set(data)); !errors.As(err, &refusal) || !strings.Contains(refusal.Message, want) {
			t.Errorf("%+v: %v, want %s", data, err, want)
		}
	}
}
