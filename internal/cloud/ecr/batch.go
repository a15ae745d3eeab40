// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"context"
	"errors"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/image/registrystore"
)

type batchGetInput struct {
	RegistryID, RepositoryName string
	ImageIDs                   []identifier
	AcceptedMediaTypes         []string // an image is as it was pushed, whatever is accepted
}

type shownImage struct {
	RegistryID, RepositoryName            string
	ImageID                               *identifier
	ImageManifest, ImageManifestMediaType string
}

type batchGetOutput struct {
	Images   []shownImage
	Failures []failure
}

// maxBatch bounds the manifests of one answer, in bytes. A manifest may have 4 MiB, and a request may ask for the same
// manifest a hundred times: the service would hold all of them in memory.
const maxBatch = 16 << 20

func (a *api) batchGetImage() awsfront.Spec[batchGetInput, batchGetOutput] {
	return awsfront.Spec[batchGetInput, batchGetOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *batchGetInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(_ context.Context, call *awsfront.Call, in *batchGetInput) (*batchGetOutput, error) {
			if err := a.checkBatch(call, in.RepositoryName, in.ImageIDs); err != nil {
				return nil, err
			}
			out := &batchGetOutput{Images: []shownImage{}, Failures: []failure{}}
			total := 0
			for _, id := range in.ImageIDs {
				m, content, problem := a.find(in.RepositoryName, id)
				if problem != nil {
					out.Failures = append(out.Failures, *problem)
					continue
				}
				if total += len(content); total > maxBatch {
					return nil, awsfault.Errorf(invalid, "Invalid parameter at 'imageIds': the manifests have more than %d bytes together: ask for fewer images at a time", maxBatch)
				}
				out.Images = append(out.Images, shownImage{
					RegistryID: call.Caller.Account(), RepositoryName: in.RepositoryName, ImageID: &identifier{m.Digest.String(), id.ImageTag},
					ImageManifest: string(content), ImageManifestMediaType: m.MediaType,
				})
			}
			return out, nil
		},
	}
}

func (a *api) checkBatch(call *awsfront.Call, repository string, ids []identifier) error {
	if _, err := a.Store.Get(repository); err != nil {
		return a.fault(call, repository, err)
	}
	return checkIdentifiers(ids)
}

type batchDeleteInput struct {
	RegistryID, RepositoryName string
	ImageIDs                   []identifier
}

type batchDeleteOutput struct {
	ImageIDs []identifier
	Failures []failure
}

func (a *api) batchDeleteImage() awsfront.Spec[batchDeleteInput, batchDeleteOutput] {
	return awsfront.Spec[batchDeleteInput, batchDeleteOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *batchDeleteInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *batchDeleteInput) (*batchDeleteOutput, error) {
			if err := a.checkBatch(call, in.RepositoryName, in.ImageIDs); err != nil {
				return nil, err
			}
			out := &batchDeleteOutput{ImageIDs: []identifier{}, Failures: []failure{}}
			for _, id := range in.ImageIDs {
				gone, problem, err := a.remove(ctx, in.RepositoryName, id)
				if err != nil {
					return nil, a.fault(call, in.RepositoryName, err)
				}
				if problem != nil {
					out.Failures = append(out.Failures, *problem)
				}
				out.ImageIDs = append(out.ImageIDs, gone...)
			}
			return out, nil
		},
	}
}

// remove removes an image by its digest, or a tag of one.
func (a *api) remove(ctx context.Context, repository string, id identifier) ([]identifier, *failure, error) {
	m, _, problem := a.find(repository, id)
	if problem != nil {
		return nil, problem, nil
	}
	var gone []identifier
	var err error
	if id.ImageDigest == "" {
		_, err = a.Store.DeleteTag(ctx, repository, id.ImageTag)
		gone = []identifier{{m.Digest.String(), id.ImageTag}}
	} else {
		var tags []string
		tags, err = a.Store.DeleteManifest(ctx, repository, m.Digest)
		for _, tag := range tags {
			gone = append(gone, identifier{m.Digest.String(), tag})
		}
		if len(tags) == 0 {
			gone = []identifier{{ImageDigest: m.Digest.String()}}
		}
	}
	if by, ok := errors.AsType[*registrystore.ReferencedError](err); ok {
		return nil, &failure{&id, "ImageReferencedByManifestList", "Requested image referenced by manifest list: [" + by.By.String() + "]"}, nil
	}
	if errors.Is(err, registrystore.ErrNoManifest) {
		return nil, &failure{&id, "ImageNotFound", "Requested image not found"}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return gone, nil, nil
}

type putImageInput struct {
	RegistryID, RepositoryName, ImageManifest, ImageManifestMediaType, ImageTag, ImageDigest string
}

type putImageOutput struct{ Image *shownImage }

func (a *api) putImage() awsfront.Spec[putImageInput, putImageOutput] {
	return awsfront.Spec[putImageInput, putImageOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *putImageInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *putImageInput) (*putImageOutput, error) {
			sum := digest.FromString(in.ImageManifest)
			if in.ImageDigest != "" && in.ImageDigest != sum.String() {
				return nil, awsfault.Errorf("ImageDigestDoesNotMatchException", "The digest of the manifest is %s and not %.80s", sum, in.ImageDigest)
			}
			reference := in.ImageTag
			if reference == "" {
				reference = sum.String()
			}
			if now, _, err := a.Store.Manifest(in.RepositoryName, reference); err == nil && now.Digest == sum {
				return nil, awsfault.Errorf("ImageAlreadyExistsException", "Image with digest '%s' and tag '%s' already exists in the repository with name '%s' in registry with id '%s'",
					sum, in.ImageTag, in.RepositoryName, call.Caller.Account())
			}
			m, err := a.Store.PutManifest(ctx, in.RepositoryName, reference, in.ImageManifestMediaType, []byte(in.ImageManifest))
			if err != nil {
				return nil, a.fault(call, in.RepositoryName, err)
			}
			return &putImageOutput{&shownImage{
				RegistryID: call.Caller.Account(), RepositoryName: in.RepositoryName, ImageID: &identifier{m.Digest.String(), in.ImageTag},
				ImageManifest: in.ImageManifest, ImageManifestMediaType: m.MediaType,
			}}, nil
		},
	}
}
