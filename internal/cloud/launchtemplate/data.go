// SPDX-License-Identifier: Apache-2.0

package launchtemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awstag"
)

// Data is EC2's LaunchTemplateData, as far as Muster takes it. Its fields are the members that requests may have and
// answers have; the form of JSON is how versions are kept. Fields with
// filters are what versions are described by.
type Data struct {
	BlockDeviceMappings              []BlockDeviceMapping              `json:",omitempty"`
	CapacityReservationSpecification *CapacityReservationSpecification `json:",omitempty"`
	CreditSpecification              *CreditSpecification              `json:",omitempty"`
	DisableAPIStop                   *bool                             `json:"DisableApiStop,omitempty"`
	DisableAPITermination            *bool                             `json:"DisableApiTermination,omitempty"`
	EbsOptimized                     *bool                             `json:",omitempty"`
	EnclaveOptions                   *EnclaveOptions                   `json:",omitempty"`
	HibernationOptions               *HibernationOptions               `json:",omitempty"`
	IAMInstanceProfile               *InstanceProfile                  `json:"IamInstanceProfile,omitempty" filter:""`
	ImageID                          string                            `json:"ImageId,omitempty" filter:"image-id"`
	InstanceMarketOptions            *MarketOptions                    `json:",omitempty"`
	InstanceType                     string                            `json:",omitempty" filter:"instance-type"`
	KeyName                          string                            `json:",omitempty"`
	MetadataOptions                  *MetadataOptions                  `json:",omitempty" filter:""`
	Monitoring                       *Monitoring                       `json:",omitempty"`
	NetworkInterfaces                []NetworkInterface                `json:",omitempty"`
	Placement                        *Placement                        `json:",omitempty"`
	SecurityGroupIDs                 []string                          `json:"SecurityGroupIds,omitempty"`
	TagSpecifications                []TagSpecification                `json:",omitempty"`
	UserData                         string                            `json:",omitempty"` // in base64
}

// rootDevice is the root device of Muster's images, as ami.RootDeviceName.
const rootDevice = "/dev/xvda"

// BlockDeviceMapping is a volume of the instance.
type BlockDeviceMapping struct {
	DeviceName string `json:",omitempty"`
	Ebs        *Ebs   `json:",omitempty"`
}

// Ebs is what a volume is like.
type Ebs struct {
	DeleteOnTermination *bool  `json:",omitempty"`
	Encrypted           *bool  `json:",omitempty"`
	Iops                *int64 `json:",omitempty"`
	KmsKeyID            string `json:"KmsKeyId,omitempty"`
	Throughput          *int64 `json:",omitempty"`
	VolumeSize          *int64 `json:",omitempty"`
	VolumeType          string `json:",omitempty"`
}

// CapacityReservationSpecification says which capacity reservations an instance may use. There are no reservations.
type CapacityReservationSpecification struct {
	CapacityReservationPreference string `json:",omitempty"`
}

// CreditSpecification is of burstable types.
type CreditSpecification struct {
	CPUCredits string `json:"CpuCredits,omitempty"`
}

// EnclaveOptions can only be off.
type EnclaveOptions struct {
	Enabled *bool `json:",omitempty"`
}

// HibernationOptions can only be off.
type HibernationOptions struct {
	Configured *bool `json:",omitempty"`
}

// InstanceProfile names one, by its name or its ARN.
type InstanceProfile struct {
	ARN  string `json:"Arn,omitempty" filter:"iam-instance-profile"`
	Name string `json:",omitempty"`
}

// MetadataOptions are of the instance metadata service.
type MetadataOptions struct {
	HTTPEndpoint            string `json:"HttpEndpoint,omitempty" filter:"http-endpoint"`
	HTTPProtocolIpv6        string `json:"HttpProtocolIpv6,omitempty"`
	HTTPPutResponseHopLimit *int64 `json:"HttpPutResponseHopLimit,omitempty"`
	HTTPTokens              string `json:"HttpTokens,omitempty" filter:"http-tokens"`
	InstanceMetadataTags    string `json:",omitempty"`
}

// Monitoring is CloudWatch's.
type Monitoring struct {
	Enabled *bool `json:",omitempty"`
}

// NetworkInterface is the one that an instance has.
type NetworkInterface struct {
	AssociatePublicIPAddress *bool    `json:"AssociatePublicIpAddress,omitempty"`
	DeleteOnTermination      *bool    `json:",omitempty"`
	Description              string   `json:",omitempty"`
	DeviceIndex              *int64   `json:",omitempty"`
	Groups                   []string `json:",omitempty"`
	InterfaceType            string   `json:",omitempty"`
	NetworkCardIndex         *int64   `json:",omitempty"`
	SubnetID                 string   `json:"SubnetId,omitempty"`
}

// Placement says where an instance is.
type Placement struct {
	AvailabilityZone string `json:",omitempty"`
	Tenancy          string `json:",omitempty"`
}

// TagSpecification has the tags of a type of resources.
type TagSpecification struct {
	ResourceType string       `json:",omitempty"`
	Tags         []awstag.Tag `json:",omitempty"`
}

// Read reads the data of a kept version. A member that is not known is an error: somebody else wrote it.
func Read(v v1alpha1.LaunchTemplateVersion) (Data, error) {
	var data Data
	decoder := json.NewDecoder(bytes.NewReader(v.Data.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&data); err != nil {
		return Data{}, fmt.Errorf("reading the data of version %d: %w", v.Number, err)
	}
	return data, nil
}

// Kept is the data as a version keeps it.
func (d Data) Kept() (runtime.RawExtension, error) {
	raw, err := json.Marshal(d)
	if err != nil {
		return runtime.RawExtension{}, fmt.Errorf("writing the data of a launch template: %w", err)
	}
	return runtime.RawExtension{Raw: raw}, nil
}

// Over is data with what another version says where this one says nothing, as CreateLaunchTemplateVersion makes it of a
// source version.
func (d Data) Over(source Data) Data {
	merged, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for _, from := range []struct {
		data Data
		into map[string]json.RawMessage
	}{{source, merged}, {d, own}} {
		raw, err := json.Marshal(from.data)
		if err == nil {
			err = json.Unmarshal(raw, &from.into)
		}
		if err != nil {
			panic(fmt.Sprintf("launchtemplate: strings, numbers and lists cannot be written: %v", err))
		}
	}
	maps.Copy(merged, own)
	raw, err := json.Marshal(merged)
	if err == nil {
		d = Data{}
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		panic(fmt.Sprintf("launchtemplate: what was written cannot be read: %v", err))
	}
	return d
}

// GroupIDs are the security groups, which may be those of the network interface.
func (d Data) GroupIDs() []string {
	if len(d.NetworkInterfaces) > 0 && len(d.NetworkInterfaces[0].Groups) > 0 {
		return d.NetworkInterfaces[0].Groups
	}
	return d.SecurityGroupIDs
}

// DiskSize is the size of the root device in GiB; 0 if the data does not say.
func (d Data) DiskSize() int32 {
	for _, m := range d.BlockDeviceMappings {
		if m.DeviceName == rootDevice && m.Ebs != nil && m.Ebs.VolumeSize != nil {
			return int32(min(max(*m.Ebs.VolumeSize, v1alpha1.MinDisk), v1alpha1.MaxDisk))
		}
	}
	return 0
}

// InstanceTags are the tags of instances.
func (d Data) InstanceTags() []awstag.Tag {
	for _, s := range d.TagSpecifications {
		if s.ResourceType == "instance" {
			return s.Tags
		}
	}
	return nil
}
