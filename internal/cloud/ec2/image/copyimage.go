// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"regexp"
	"slices"
	"time"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// MaxCopies is how many copies an account has: a bound of the store, not EC2's.
const MaxCopies = 1000

// nameForm is that of EC2's names of images.
var nameForm = regexp.MustCompile(`^[a-zA-Z0-9()\[\] ./'@_-]{3,128}$`)

type copyImageInput struct {
	SourceImageID, SourceRegion, Name, Description, ClientToken string
	TagSpecifications                                           []ec2resource.TagSpecification
	DryRun                                                      bool
}

type copyImageOutput struct{ ImageID string }

func (a *Actions) copyImage() awsfront.Spec[copyImageInput, copyImageOutput] {
	return awsfront.Spec[copyImageInput, copyImageOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *copyImageInput) ([]awsfront.Target, error) {
			made, err := a.ec2.AboutNew(call, Resource, in.TagSpecifications, nil)
			if err != nil {
				return nil, err
			}
			for i := range made {
				made[i].Resource = a.arn("*")
			}
			source, err := a.About(ctx, call, in.SourceImageID)
			return append(made, source), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *copyImageInput) (*copyImageOutput, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, Resource)
			if err != nil {
				return nil, err
			}
			key, err := ec2resource.TokenOf(call, in.ClientToken)
			if err != nil {
				return nil, err
			}
			if err := a.checkCopy(ctx, in); err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold("images")()
			all, err := a.copies().List(ctx)
			if err != nil {
				return nil, err
			}
			for i := range all {
				if made, err := key.Made(ec2resource.Marked(all[i].Labels, all[i].Annotations)); made || err != nil {
					return &copyImageOutput{all[i].ID}, err
				}
			}
			switch {
			case slices.ContainsFunc(all, func(r ec2resource.Record[keptCopy]) bool { return r.Data.Name == in.Name }):
				return nil, awsfault.Errorf("InvalidAMIName.Duplicate", "AMI name %s is already in use by another AMI of the account", in.Name)
			case len(all) >= MaxCopies:
				return nil, awsfault.Errorf("AMIQuotaExceeded", "There are %d images of the account: Muster keeps at most %d", len(all), MaxCopies)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			copies := a.copies()
			copies.NewID = func(random string) string { return ami.Copy(in.SourceImageID, random) }
			made, err := copies.Create(ctx, keptCopy{Name: in.Name, Description: in.Description, Source: in.SourceImageID}, tags[Resource], key)
			if err != nil {
				return nil, err
			}
			return &copyImageOutput{made.ID}, nil
		},
	}
}

// checkCopy refuses what cannot be copied.
func (a *Actions) checkCopy(ctx context.Context, in *copyImageInput) error {
	switch {
	case in.SourceImageID == "" || in.SourceRegion == "" || in.Name == "":
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameters SourceImageId, SourceRegion and Name")
	case in.SourceRegion != a.ec2.Region:
		return awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64s) for parameter SourceRegion is invalid. The account has the region %s alone", in.SourceRegion, a.ec2.Region)
	case !nameForm.MatchString(in.Name):
		return awsfault.Errorf("InvalidAMIName.Malformed", "AMI names must be between 3 and 128 characters long, and may contain letters, numbers, '(', ')', '[', ']', ' ', '.', '/', '-', ''', '@' or '_'. It is %.128q", in.Name)
	case len(in.Description) > 255:
		return awsfault.Errorf(ec2resource.InvalidParameter, "Description has %d characters: there may be 255", len(in.Description))
	}
	return a.Exists(ctx, in.SourceImageID)
}

type imageInput struct {
	ImageID string
	DryRun  bool
}

type deprecateInput struct {
	ImageID     string
	DeprecateAt *time.Time
	DryRun      bool
}

type returned struct{ Return *bool }

func (a *Actions) deregisterImage() awsfront.Spec[imageInput, returned] {
	return awsfront.Spec[imageInput, returned]{
		About: func(ctx context.Context, call *awsfront.Call, in *imageInput) ([]awsfront.Target, error) {
			return a.aboutChanged(ctx, call, in.ImageID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *imageInput) (*returned, error) {
			if err := a.isOwnCopy(ctx, in.ImageID); err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return &returned{new(true)}, a.copies().Remove(ctx, in.ImageID)
		},
	}
}

func (a *Actions) enableImageDeprecation() awsfront.Spec[deprecateInput, returned] {
	return awsfront.Spec[deprecateInput, returned]{
		About: func(ctx context.Context, call *awsfront.Call, in *deprecateInput) ([]awsfront.Target, error) {
			return a.aboutChanged(ctx, call, in.ImageID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deprecateInput) (*returned, error) {
			if in.DeprecateAt == nil {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter DeprecateAt")
			}
			return a.deprecate(ctx, in.ImageID, new(in.DeprecateAt.UTC().Truncate(time.Minute)), in.DryRun) // to the minute, as EC2's
		},
	}
}

func (a *Actions) disableImageDeprecation() awsfront.Spec[imageInput, returned] {
	return awsfront.Spec[imageInput, returned]{
		About: func(ctx context.Context, call *awsfront.Call, in *imageInput) ([]awsfront.Target, error) {
			return a.aboutChanged(ctx, call, in.ImageID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *imageInput) (*returned, error) {
			return a.deprecate(ctx, in.ImageID, nil, in.DryRun)
		},
	}
}

// aboutChanged is the image that a request changes.
func (a *Actions) aboutChanged(ctx context.Context, call *awsfront.Call, id string) ([]awsfront.Target, error) {
	if id == "" {
		return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter ImageId")
	}
	target, err := a.About(ctx, call, id)
	return []awsfront.Target{target}, err
}

// deprecate sets since when a copy is deprecated.
func (a *Actions) deprecate(ctx context.Context, id string, at *time.Time, dry bool) (*returned, error) {
	if err := a.isOwnCopy(ctx, id); err != nil {
		return nil, err
	}
	if err := dryrun.Would(dry); err != nil {
		return nil, err
	}
	return &returned{new(true)}, a.copies().Update(ctx, id, func(r *ec2resource.Record[keptCopy]) error {
		r.Data.Deprecated = at
		return nil
	})
}
