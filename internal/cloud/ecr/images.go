// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/image/registrystore"
)

type identifier struct{ ImageDigest, ImageTag string }

// reference is what the store finds an image by.
func (i identifier) reference() string { return cmp.Or(i.ImageDigest, i.ImageTag) }

// maxIdentifiers is ECR's.
const maxIdentifiers = 100

func checkIdentifiers(ids []identifier) error {
	if n := len(ids); n == 0 || n > maxIdentifiers {
		return awsfault.Errorf(invalid, "Invalid parameter at 'imageIds': there are %d, and there must be from 1 to %d", n, maxIdentifiers)
	}
	return nil
}

// find finds an image by its digest, its tag or both.
func (a *api) find(repository string, id identifier) (registrystore.Manifest, []byte, *failure) {
	var m registrystore.Manifest
	switch {
	case id.reference() == "":
		return m, nil, &failure{&id, "MissingDigestAndTag", "Invalid request parameters: both tag and digest cannot be null"}
	case id.ImageDigest != "" && registrystore.CheckDigest(digest.Digest(id.ImageDigest)) != nil:
		return m, nil, &failure{&id, "InvalidImageDigest", "Invalid request parameters: image digest should satisfy the regex '[a-zA-Z0-9-_+.]+:[a-fA-F0-9]+'"}
	case id.ImageTag != "" && registrystore.CheckTag(id.ImageTag) != nil:
		return m, nil, &failure{&id, "InvalidImageTag", "Invalid request parameters: image tag is not valid"}
	}
	m, content, err := a.Store.Manifest(repository, id.reference())
	if err == nil && id.ImageTag != "" && id.ImageDigest != "" {
		tagged, _, problem := a.Store.Manifest(repository, id.ImageTag)
		if problem != nil || tagged.Digest != m.Digest {
			return m, nil, &failure{&id, "ImageTagDoesNotMatchDigest", "Requested tag does not belong to the digest"}
		}
	}
	switch {
	case errors.Is(err, registrystore.ErrNoManifest):
		return m, nil, &failure{&id, "ImageNotFound", "Requested image not found"}
	case err != nil:
		return m, nil, &failure{&id, "UpstreamUnavailable", "the image cannot be read: the log of the service says why"}
	}
	return m, content, nil
}

type failure struct {
	ImageID                    *identifier
	FailureCode, FailureReason string
}

type filter struct{ TagStatus string }

// wants reports whether a list shows images with tags, and those without.
func (f *filter) wants() (tagged, untagged bool, err error) {
	switch {
	case f == nil, f.TagStatus == "", f.TagStatus == "ANY":
		return true, true, nil
	case f.TagStatus == "TAGGED":
		return true, false, nil
	case f.TagStatus == "UNTAGGED":
		return false, true, nil
	}
	return false, false, awsfault.Errorf(invalid, "Invalid parameter at 'filter.tagStatus': %.40q must be ANY, TAGGED or UNTAGGED", f.TagStatus)
}

// manifests are the images of a repository that a list shows.
func (a *api) manifests(call *awsfront.Call, repository string, f *filter) ([]registrystore.Manifest, error) {
	tagged, untagged, err := f.wants()
	if err != nil {
		return nil, err
	}
	all, err := a.Store.Manifests(repository)
	return slices.DeleteFunc(all, func(m registrystore.Manifest) bool {
		return len(m.Tags) > 0 && !tagged || len(m.Tags) == 0 && !untagged
	}), a.fault(call, repository, err)
}

type listInput struct {
	RegistryID, RepositoryName, NextToken string
	MaxResults                            *int32
	Filter                                *filter
}

type listOutput struct {
	ImageIDs  []identifier
	NextToken string
}

func (a *api) listImages() awsfront.Spec[listInput, listOutput] {
	return awsfront.Spec[listInput, listOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *listInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *listInput) (*listOutput, error) {
			all, err := a.manifests(call, in.RepositoryName, in.Filter)
			if err != nil {
				return nil, err
			}
			ids := []identifier{}
			for _, m := range all {
				if len(m.Tags) == 0 {
					ids = append(ids, identifier{ImageDigest: m.Digest.String()})
				}
				for _, tag := range m.Tags {
					ids = append(ids, identifier{m.Digest.String(), tag})
				}
			}
			page, next, err := awsresource.Page(a.Account, call, []any{in.RepositoryName, in.Filter}, ids, func(i identifier) string { return i.ImageDigest + " " + i.ImageTag }, in.MaxResults, in.NextToken)
			return &listOutput{append([]identifier{}, page...), next}, err
		},
	}
}

type detail struct {
	RegistryID, RepositoryName, ImageDigest, ImageManifestMediaType, ArtifactMediaType string
	ImageTags                                                                          []string
	ImageSizeInBytes                                                                   int64
	ImagePushedAt                                                                      time.Time
}

type describeImagesInput struct {
	RegistryID, RepositoryName, NextToken string
	ImageIDs                              []identifier
	MaxResults                            *int32
	Filter                                *filter
}

type describeImagesOutput struct {
	ImageDetails []detail
	NextToken    string
}

func (a *api) describeImages() awsfront.Spec[describeImagesInput, describeImagesOutput] {
	return awsfront.Spec[describeImagesInput, describeImagesOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *describeImagesInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *describeImagesInput) (*describeImagesOutput, error) {
			all, err := a.manifests(call, in.RepositoryName, in.Filter)
			if err != nil {
				return nil, err
			}
			next := ""
			if len(in.ImageIDs) > 0 {
				wanted := map[digest.Digest]bool{}
				for _, id := range in.ImageIDs {
					m, _, problem := a.find(in.RepositoryName, id)
					if problem != nil {
						return nil, awsfault.Errorf("ImageNotFoundException", "The image with imageId {imageDigest:'%.80s', imageTag:'%.130s'} does not exist within the repository with name '%s' in the registry with id '%s'",
							id.ImageDigest, id.ImageTag, in.RepositoryName, call.Caller.Account())
					}
					wanted[m.Digest] = true
				}
				all = slices.DeleteFunc(all, func(m registrystore.Manifest) bool { return !wanted[m.Digest] })
			} else if all, next, err = awsresource.Page(a.Account, call, []any{in.RepositoryName, in.Filter}, all, func(m registrystore.Manifest) string { return m.Digest.String() }, in.MaxResults, in.NextToken); err != nil {
				return nil, err
			}
			out := &describeImagesOutput{ImageDetails: []detail{}, NextToken: next}
			for _, m := range all {
				out.ImageDetails = append(out.ImageDetails, detail{
					RegistryID: call.Caller.Account(), RepositoryName: in.RepositoryName, ImageDigest: m.Digest.String(), ImageTags: m.Tags, ImageSizeInBytes: m.Size,
					ImagePushedAt: m.Pushed, ImageManifestMediaType: m.MediaType, ArtifactMediaType: m.ArtifactType,
				})
			}
			return out, nil
		},
	}
}
