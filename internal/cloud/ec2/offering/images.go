// SPDX-License-Identifier: Apache-2.0

package offering

import (
	"context"
	"slices"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// RegisterImages adds the actions about them to the front.
func (a *Actions) RegisterImages(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeImages", a.describeImages())
}

// shownImage is an image as EC2 shows it.
type shownImage struct {
	ImageID                               string `filter:"image-id"`
	Name                                  string `filter:"name"`
	Description                           string `filter:"description"`
	ImageLocation                         string `filter:"manifest-location"`
	State                                 string `filter:"state"`
	OwnerID                               string `filter:"owner-id"`
	ImageOwnerAlias                       string `filter:"owner-alias"`
	Architecture                          string `filter:"architecture"`
	CreationDate                          string `filter:"creation-date"`
	DeprecationTime                       string
	ImageType                             string `filter:"image-type"`
	RootDeviceName                        string `filter:"root-device-name"`
	RootDeviceType                        string `filter:"root-device-type"`
	PlatformDetails                       string `filter:"platform-details"`
	UsageOperation, BootMode, ImdsSupport string
	VirtualizationType                    string        `filter:"virtualization-type"`
	Hypervisor                            string        `filter:"hypervisor"`
	Public                                *bool         `filter:"is-public"`
	EnaSupport                            *bool         `filter:"ena-support"`
	BlockDeviceMappings                   []blockDevice `filter:"block-device-mapping."`
	Tags                                  []awstag.Tag
}

type blockDevice struct {
	DeviceName string `filter:"device-name"`
	Ebs        struct {
		DeleteOnTermination *bool  `filter:"delete-on-termination"`
		Encrypted           *bool  `filter:"encrypted"`
		VolumeSize          *int64 `filter:"volume-size"`
		VolumeType          string `filter:"volume-type"`
	} `filter:""`
}

// timeForm is how EC2 writes times of images.
const timeForm = "2006-01-02T15:04:05.000Z"

func showImage(i ami.Image) shownImage {
	root := blockDevice{DeviceName: ami.RootDeviceName}
	root.Ebs.DeleteOnTermination, root.Ebs.Encrypted, root.Ebs.VolumeSize, root.Ebs.VolumeType = new(true), new(false), new(int64(ami.RootDiskGiB)), "gp3"
	var deprecated string
	if !i.Deprecated.IsZero() {
		deprecated = i.Deprecated.UTC().Format(timeForm)
	}
	return shownImage{
		ImageID: i.ID, Name: i.Name, Description: i.Description, ImageLocation: ami.OwnerAlias + "/" + i.Name, State: "available", OwnerID: ami.OwnerID,
		ImageOwnerAlias: ami.OwnerAlias, Architecture: ami.Architecture, CreationDate: i.Created.UTC().Format(timeForm), DeprecationTime: deprecated, ImageType: "machine",
		RootDeviceName: ami.RootDeviceName, RootDeviceType: "ebs", PlatformDetails: "Linux/UNIX", UsageOperation: "RunInstances", VirtualizationType: "hvm",
		Hypervisor: "xen", BootMode: "uefi-preferred", ImdsSupport: "v2.0", Public: new(true), EnaSupport: new(true), BlockDeviceMappings: []blockDevice{root}, Tags: []awstag.Tag{},
	}
}

type describeImagesInput struct {
	ec2resource.Paged
	ImageIDs, Owners, ExecutableUsers  []string
	IncludeDeprecated, IncludeDisabled bool // no image is disabled
}

type describeImagesOutput struct {
	Images    []shownImage
	NextToken string
}

func (a *Actions) describeImages() awsfront.Spec[describeImagesInput, describeImagesOutput] {
	return awsfront.Spec[describeImagesInput, describeImagesOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *describeImagesInput) (*describeImagesOutput, error) {
			images, err := chosenImages(in)
			if err != nil {
				return nil, err
			}
			all := []shownImage{}
			owned := len(in.Owners) == 0 || slices.Contains(in.Owners, ami.OwnerAlias) || slices.Contains(in.Owners, ami.OwnerID)
			executable := len(in.ExecutableUsers) == 0 || slices.Contains(in.ExecutableUsers, "all")
			if owned && executable {
				for _, i := range images {
					all = append(all, showImage(i))
				}
			}
			out := &describeImagesOutput{}
			out.Images, out.NextToken, err = ec2resource.Choose(a.ec2, call, imageNoun(), all, nil, in.Paged)
			return out, err
		},
	}
}

// chosenImages are the images of some ids, each once; if no id is given, the images that are not deprecated, or all.
func chosenImages(in *describeImagesInput) ([]ami.Image, error) {
	switch {
	case len(in.ImageIDs) == 0 && in.IncludeDeprecated:
		return append(ami.All(), ami.Deprecated()...), nil
	case len(in.ImageIDs) == 0:
		return ami.All(), nil
	}
	var chosen []ami.Image
	for _, id := range in.ImageIDs {
		if err := ec2id.Image.Check(id); err != nil {
			return nil, err
		}
		found, ok := ami.Find(id)
		if !ok {
			return nil, ec2id.Image.NotFound(id)
		}
		if !slices.Contains(chosen, found) {
			chosen = append(chosen, found)
		}
	}
	return chosen, nil
}

func imageNoun() ec2resource.Noun[shownImage] {
	return ec2resource.Noun[shownImage]{
		Kind: ec2id.Image, ID: func(i *shownImage) string { return i.ImageID }, Tags: func(*shownImage) map[string]string { return nil },
		Fields: awsresource.FiltersOf[shownImage](),
		Rules:  ec2filter.Rules{Names: []string{"platform", "product-code", "ramdisk-id"}}, // of Windows, the marketplace and the like
	}
}
