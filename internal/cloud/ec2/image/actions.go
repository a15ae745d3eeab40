// SPDX-License-Identifier: Apache-2.0

// Package image has EC2's actions about the images of machines: Muster's own images, without anything stored, and the account's
// copies of them, which are records.
//
// A copy's id says which image it is of ([ami.Copy]), so that its machines boot without its record: they run on after
// DeregisterImage, as on EC2, and nothing is launched from it any more.
package image

import (
	"context"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// Resource is the type of images in ARNs, tags and records.
const Resource = "image"

// Actions are the actions of the package, over the resources of the account.
type Actions struct {
	ec2 *ec2resource.EC2
}

// New makes Actions, which are registered by a method of their own.
func New(ec2 *ec2resource.EC2) *Actions { return &Actions{ec2} }

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "DescribeImages", a.describeImages())
	ec2resource.Register(a.ec2, f, "CopyImage", a.copyImage())
	ec2resource.Register(a.ec2, f, "DeregisterImage", a.deregisterImage())
	ec2resource.Register(a.ec2, f, "EnableImageDeprecation", a.enableImageDeprecation())
	ec2resource.Register(a.ec2, f, "DisableImageDeprecation", a.disableImageDeprecation())
	tagger := a.copies().Tagger(Resource, nil)
	tagger.About = func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
		if err := a.isOwnCopy(ctx, id); err != nil {
			return awsfront.Target{}, err
		}
		return a.About(ctx, call, id)
	}
	a.ec2.Tagged(tagger)
}

// keptCopy is a copy of an image as it is kept.
type keptCopy struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Source      string `json:"source"`
	// Deprecated is since when it is deprecated, nil for never.
	Deprecated *time.Time `json:"deprecated,omitempty"`
}

// copies are the records of copies.
func (a *Actions) copies() ec2resource.Records[keptCopy] {
	return ec2resource.Records[keptCopy]{EC2: a.ec2, Kind: ec2id.Image, Of: awsrecord.Kind[keptCopy]{Type: Resource}}
}

// About is an image as IAM is asked about it. A missing image has no tags.
func (a *Actions) About(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
	conditions, tags := map[string][]string{"ec2:ImageID": {id}, "ec2:ImageType": {"machine"}, "ec2:Public": {"true"}}, v1alpha1.Tags(nil)
	if ami.IsCopy(id) {
		found, err := a.copies().Get(ctx, id)
		switch {
		case err == nil:
			conditions["ec2:Public"], tags = []string{"false"}, found.Tags
		case !ec2resource.IsMissing(err, ec2id.Image):
			return awsfront.Target{}, err
		}
	}
	target := a.ec2.Target(call, Resource, id, tags, conditions)
	target.Resource = a.arn(id)
	return target, nil
}

// arn is the name of an image: images are of no account.
func (a *Actions) arn(id string) string { return "arn:aws:ec2:" + a.ec2.Region + "::image/" + id }

// Exists refuses the id of an image that is not there: nothing is launched from a copy that was deregistered.
func (a *Actions) Exists(ctx context.Context, id string) error {
	if err := ec2id.Image.Check(id); err != nil {
		return err
	}
	if ami.IsCopy(id) {
		_, err := a.copies().Get(ctx, id)
		return err
	}
	if _, ok := ami.Find(id); !ok {
		return ec2id.Image.NotFound(id)
	}
	return nil
}

// isOwnCopy refuses what is no copy of the account's. An image that comes with Muster is another's.
func (a *Actions) isOwnCopy(ctx context.Context, id string) error {
	if _, ok := ami.Find(id); ok && !ami.IsCopy(id) {
		return awsfault.Errorf("AuthFailure", "Not authorized for image:%s. It is of the owner %s: make a copy of it by CopyImage", id, ami.OwnerAlias)
	}
	_, err := a.copies().Get(ctx, id)
	return err
}
