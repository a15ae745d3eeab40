// SPDX-License-Identifier: Apache-2.0

package ecr

import (
	"errors"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/image/registrystore"
)

const service = "ecr"

// Config is what the actions need.
type Config struct {
	awsresource.Account
	Store *registrystore.Store
	// Login makes a password of the registry for a caller.
	Login func(awsfront.Caller) (password string, expires time.Time, err error)
}

// api has the actions.
type api struct{ Config }

// Register adds the actions to the front.
func Register(f *awsfront.Front, c Config) error {
	if c.Store == nil || c.Pages == nil || c.Region == "" || c.Login == nil {
		return errors.New("the actions of ECR need a store of images, a sealer of pages, a region and a maker of passwords")
	}
	a := &api{c}
	awsfront.Register(f, service, "GetAuthorizationToken", a.getAuthorizationToken())
	awsfront.Register(f, service, "CreateRepository", a.createRepository())
	awsfront.Register(f, service, "DescribeRepositories", a.describeRepositories())
	awsfront.Register(f, service, "DeleteRepository", a.deleteRepository())
	awsfront.Register(f, service, "PutImageTagMutability", a.putImageTagMutability())
	awsfront.Register(f, service, "ListImages", a.listImages())
	awsfront.Register(f, service, "DescribeImages", a.describeImages())
	awsfront.Register(f, service, "BatchGetImage", a.batchGetImage())
	awsfront.Register(f, service, "BatchDeleteImage", a.batchDeleteImage())
	awsfront.Register(f, service, "PutImage", a.putImage())
	awsfront.Register(f, service, "ListTagsForResource", a.listTags())
	awsfront.Register(f, service, "TagResource", a.tagResource())
	awsfront.Register(f, service, "UntagResource", a.untagResource())
	for action, none := range noPolicies() {
		awsfront.Register(f, service, action, a.policy(none))
	}
	return nil
}

// fault is an error of the store in ECR's words.
func (a *api) fault(call *awsfront.Call, repository string, err error) error {
	var code, message string
	switch {
	case err == nil:
		return nil
	case errors.Is(err, registrystore.ErrNoRepository):
		code, message = "RepositoryNotFoundException", "The repository with name '"+repository+"' does not exist in the registry with id '"+call.Caller.Account()+"'"
	case errors.Is(err, registrystore.ErrExists):
		code, message = "RepositoryAlreadyExistsException", "The repository with name '"+repository+"' already exists in the registry with id '"+call.Caller.Account()+"'"
	case errors.Is(err, registrystore.ErrNotEmpty):
		code, message = "RepositoryNotEmptyException", "The repository with name '"+repository+"' in registry with id '"+call.Caller.Account()+"' cannot be deleted because it still contains images"
	case errors.Is(err, registrystore.ErrNoBlob):
		code, message = "LayersNotFoundException", err.Error()
	case errors.Is(err, registrystore.ErrImmutable):
		code, message = "ImageTagAlreadyExistsException", err.Error()
	case errors.Is(err, registrystore.ErrInvalid):
		code, message = invalid, err.Error()
	default:
		return err
	}
	return &awsfault.Error{Code: code, Message: message, Cause: err}
}

const invalid = "InvalidParameterException"

// about is one repository, which need not exist, in the account's own registry.
func (a *api) about(call *awsfront.Call, registry, repository string) ([]awsfront.Target, error) {
	if err := a.own(call, registry); err != nil {
		return nil, err
	}
	if err := registrystore.CheckName(repository); err != nil {
		return nil, awsfault.Errorf(invalid, "Invalid parameter at 'repositoryName' failed to satisfy constraint: %v", err)
	}
	conditions := map[string][]string{}
	if r, err := a.Store.Get(repository); err == nil {
		awsresource.ResourceTags(conditions, r.Tags, service)
	}
	return []awsfront.Target{{Resource: a.arn(call, repository), Conditions: conditions}}, nil
}

// own refuses the registry of another account.
func (a *api) own(call *awsfront.Call, registry string) error {
	if registry != "" && registry != call.Caller.Account() {
		return awsfault.Errorf(invalid, "Invalid parameter at 'registryId': there is no registry %.20q here, only %s", registry, call.Caller.Account())
	}
	return nil
}

func (a *api) arn(call *awsfront.Call, repository string) string {
	return a.ARN(call, "repository/"+repository)
}

// host is the name of the registry, which machines resolve.
func (a *api) host(call *awsfront.Call) string {
	return call.Caller.Account() + ".dkr.ecr." + a.Region + ".amazonaws.com"
}
