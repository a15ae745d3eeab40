// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"context"
	"encoding/base64"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/image/registrystore"
)

type tokenInput struct{ RegistryIDs []string }

type authorization struct {
	AuthorizationToken, ProxyEndpoint string
	ExpiresAt                         time.Time
}

type tokenOutput struct{ AuthorizationData []authorization }

func (a *api) getAuthorizationToken() awsfront.Spec[tokenInput, tokenOutput] {
	return awsfront.Spec[tokenInput, tokenOutput]{
		Do: func(_ context.Context, call *awsfront.Call, in *tokenInput) (*tokenOutput, error) {
			for _, registry := range in.RegistryIDs {
				if err := a.own(call, registry); err != nil {
					return nil, err
				}
			}
			password, expires, err := a.Login(call.Caller)
			if err != nil {
				return nil, err
			}
			return &tokenOutput{[]authorization{{
				AuthorizationToken: base64.StdEncoding.EncodeToString([]byte("AWS:" + password)), ProxyEndpoint: "https://" + a.host(call), ExpiresAt: expires,
			}}}, nil
		},
	}
}

type scanning struct{ ScanOnPush bool }

type encryption struct{ EncryptionType, KMSKey string }

// repository is one as ECR shows it.
type repository struct {
	RepositoryARN, RegistryID, RepositoryName, RepositoryURI, ImageTagMutability string
	CreatedAt                                                                    time.Time
	ImageScanningConfiguration                                                   *scanning
	EncryptionConfiguration                                                      *encryption
}

const (
	mutable, immutable = "MUTABLE", "IMMUTABLE"
	// cipher is what ECR says of a repository that nobody chose a key for. The registry's directory is as safe as the
	// rest of the state directory.
	cipher = "AES256"
)

func (a *api) show(call *awsfront.Call, r registrystore.Repository) *repository {
	shown := &repository{
		RepositoryARN: a.arn(call, r.Name), RegistryID: call.Caller.Account(), RepositoryName: r.Name, RepositoryURI: a.host(call) + "/" + r.Name,
		ImageTagMutability: mutable, CreatedAt: r.Created, ImageScanningConfiguration: &scanning{r.ScanOnPush}, EncryptionConfiguration: &encryption{EncryptionType: cipher},
	}
	if r.Immutable {
		shown.ImageTagMutability = immutable
	}
	return shown
}

type createInput struct {
	RegistryID, RepositoryName, ImageTagMutability string
	Tags                                           []awstag.Tag
	ImageScanningConfiguration                     *scanning
	EncryptionConfiguration                        *encryption
}

type repositoryOutput struct{ Repository *repository }

func (a *api) createRepository() awsfront.Spec[createInput, repositoryOutput] {
	return awsfront.Spec[createInput, repositoryOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createInput) ([]awsfront.Target, error) {
			targets, err := a.about(call, in.RegistryID, in.RepositoryName)
			if err != nil {
				return nil, err
			}
			targets[0].Conditions = awsresource.RequestTags(nil, in.Tags) // there is no resource yet
			return targets, nil
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createInput) (*repositoryOutput, error) {
			made := registrystore.Repository{Name: in.RepositoryName, ScanOnPush: in.ImageScanningConfiguration != nil && in.ImageScanningConfiguration.ScanOnPush}
			var err error
			if made.Immutable, err = mutability(in.ImageTagMutability); err != nil {
				return nil, err
			}
			if e := in.EncryptionConfiguration; e != nil && (e.EncryptionType != cipher || e.KMSKey != "") {
				return nil, awsfault.Errorf(invalid, "Invalid parameter at 'encryptionConfiguration': it must be %s without a key, not %.20q: KMS keys encrypt nothing here", cipher, e.EncryptionType)
			}
			if made.Tags, err = awstag.Read(service, in.Tags); err != nil {
				return nil, err
			}
			if err := a.Store.Create(ctx, made); err != nil {
				return nil, a.fault(call, in.RepositoryName, err)
			}
			made, err = a.Store.Get(in.RepositoryName)
			if err != nil {
				return nil, a.fault(call, in.RepositoryName, err)
			}
			return &repositoryOutput{a.show(call, made)}, nil
		},
	}
}

func mutability(text string) (isImmutable bool, err error) {
	switch text {
	case "", mutable:
		return false, nil
	case immutable:
		return true, nil
	}
	return false, awsfault.Errorf(invalid, "Invalid parameter at 'imageTagMutability': %.40q must be %s or %s", text, mutable, immutable)
}

type describeInput struct {
	RegistryID      string
	RepositoryNames []string
	NextToken       string
	MaxResults      *int32
}

type describeOutput struct {
	Repositories []*repository
	NextToken    string
}

func (a *api) describeRepositories() awsfront.Spec[describeInput, describeOutput] {
	return awsfront.Spec[describeInput, describeOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *describeInput) ([]awsfront.Target, error) {
			if len(in.RepositoryNames) == 0 {
				return []awsfront.Target{{Resource: a.arn(call, "*")}}, a.own(call, in.RegistryID)
			}
			var targets []awsfront.Target
			for _, name := range in.RepositoryNames {
				one, err := a.about(call, in.RegistryID, name)
				if err != nil {
					return nil, err
				}
				targets = append(targets, one...)
			}
			return targets, nil
		},
		Do: func(_ context.Context, call *awsfront.Call, in *describeInput) (*describeOutput, error) {
			out := &describeOutput{Repositories: []*repository{}}
			for _, name := range in.RepositoryNames {
				r, err := a.Store.Get(name)
				if err != nil {
					return nil, a.fault(call, name, err)
				}
				out.Repositories = append(out.Repositories, a.show(call, r))
			}
			if len(in.RepositoryNames) > 0 {
				return out, nil
			}
			all, err := a.Store.List()
			if err != nil {
				return nil, err
			}
			page, next, err := awsresource.Page(a.Account, call, nil, all, func(r registrystore.Repository) string { return r.Name }, in.MaxResults, in.NextToken)
			for _, r := range page {
				out.Repositories = append(out.Repositories, a.show(call, r))
			}
			out.NextToken = next
			return out, err
		},
	}
}

type deleteInput struct {
	RegistryID, RepositoryName string
	Force                      bool
}

func (a *api) deleteRepository() awsfront.Spec[deleteInput, repositoryOutput] {
	return awsfront.Spec[deleteInput, repositoryOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *deleteInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteInput) (*repositoryOutput, error) {
			r, err := a.Store.Get(in.RepositoryName)
			if err == nil {
				err = a.Store.Delete(ctx, in.RepositoryName, in.Force)
			}
			if err != nil {
				return nil, a.fault(call, in.RepositoryName, err)
			}
			return &repositoryOutput{a.show(call, r)}, nil
		},
	}
}

type mutabilityInput struct{ RegistryID, RepositoryName, ImageTagMutability string }

type mutabilityOutput struct{ RegistryID, RepositoryName, ImageTagMutability string }

func (a *api) putImageTagMutability() awsfront.Spec[mutabilityInput, mutabilityOutput] {
	return awsfront.Spec[mutabilityInput, mutabilityOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *mutabilityInput) ([]awsfront.Target, error) {
			return a.about(call, in.RegistryID, in.RepositoryName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *mutabilityInput) (*mutabilityOutput, error) {
			isImmutable, err := mutability(in.ImageTagMutability)
			if err != nil {
				return nil, err
			}
			if err := a.Store.Update(ctx, in.RepositoryName, func(r *registrystore.Repository) error { r.Immutable = isImmutable; return nil }); err != nil {
				return nil, a.fault(call, in.RepositoryName, err)
			}
			return &mutabilityOutput{call.Caller.Account(), in.RepositoryName, in.ImageTagMutability}, nil
		},
	}
}
