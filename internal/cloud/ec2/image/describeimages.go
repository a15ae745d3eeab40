// SPDX-License-Identifier: Apache-2.0

package image

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
	SourceImageID                         string `filter:"source-image-id,omitempty"`
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
		Do: func(ctx context.Context, call *awsfront.Call, in *describeImagesInput) (*describeImagesOutput, error) {
			all, err := a.chosenImages(ctx, call, in)
			if err != nil {
				return nil, err
			}
			asked := func(names []string, of ...string) bool {
				return len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(of, name) })
			}
			all = slices.DeleteFunc(all, func(i shownImage) bool {
				if *i.Public {
					return !asked(in.Owners, ami.OwnerAlias, ami.OwnerID) || !asked(in.ExecutableUsers, "all")
				}
				return !asked(in.Owners, "self", i.OwnerID) || !asked(in.ExecutableUsers, "self", i.OwnerID)
			})
			out := &describeImagesOutput{}
			out.Images, out.NextToken, err = ec2resource.Choose(a.ec2, call, imageNoun(), all, nil, in.Paged)
			return out, err
		},
	}
}

// chosenImages are the images of some ids, each once. If no id is given, they are all of the account, and those of Muster that
// are not deprecated, or all of them: EC2 shows owners their deprecated images always.
func (a *Actions) chosenImages(ctx context.Context, call *awsfront.Call, in *describeImagesInput) ([]shownImage, error) {
	copies, err := a.copies().List(ctx)
	if err != nil {
		return nil, err
	}
	all := []shownImage{}
	for _, i := range ami.All() {
		all = append(all, showImage(i))
	}
	if in.IncludeDeprecated || len(in.ImageIDs) > 0 {
		for _, i := range ami.Deprecated() {
			all = append(all, showImage(i))
		}
	}
	for i := range copies {
		all = append(all, a.showCopy(call, &copies[i]))
	}
	if len(in.ImageIDs) == 0 {
		return all, nil
	}
	var chosen []shownImage
	for _, id := range slices.Compact(slices.Sorted(slices.Values(in.ImageIDs))) {
		if err := ec2id.Image.Check(id); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(one shownImage) bool { return one.ImageID == id })
		if i < 0 {
			return nil, ec2id.Image.NotFound(id)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// showCopy is a copy as EC2 shows it: an image of the account.
func (a *Actions) showCopy(call *awsfront.Call, r *ec2resource.Record[keptCopy]) shownImage {
	of, _ := ami.Find(r.ID) // a source that this version does not know is the first release, as for machines
	shown := showImage(of)
	shown.ImageID, shown.Name, shown.Description, shown.SourceImageID = r.ID, r.Data.Name, r.Data.Description, r.Data.Source
	shown.OwnerID, shown.ImageOwnerAlias, shown.Public = call.Caller.Account(), "", new(false)
	shown.ImageLocation, shown.CreationDate, shown.Tags = shown.OwnerID+"/"+r.Data.Name, r.Created.UTC().Format(timeForm), awsresource.ShownTags(r.Tags)
	if shown.DeprecationTime = ""; r.Data.Deprecated != nil {
		shown.DeprecationTime = r.Data.Deprecated.UTC().Format(timeForm)
	}
	return shown
}

func imageNoun() ec2resource.Noun[shownImage] {
	return ec2resource.Noun[shownImage]{
		Kind: ec2id.Image, ID: func(i *shownImage) string { return i.ImageID }, Tags: func(i *shownImage) map[string]string { return awsresource.TagMap(i.Tags) },
		Fields: awsresource.FiltersOf[shownImage](),
		Rules:  ec2filter.Rules{Names: []string{"platform", "product-code", "ramdisk-id"}}, // of Windows, the marketplace and the like
	}
}
