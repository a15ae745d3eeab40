// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	awsaccount "muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudformation"
	"muster.dev/muster/internal/cloud/cloudformation/stackrecord"
	"muster.dev/muster/internal/iam/identityservice"
)

// registerStacks adds the actions of CloudFormation, which makes requests at the same front, and brings stacks forward.
func registerStacks(front *awsfront.Front, account awsresource.Account, c Config) error {
	key, err := stackrecord.OpenKey(c.StackKey)
	if err != nil {
		return err
	}
	stacks, err := cloudformation.New(cloudformation.Config{
		Account: account, AccountID: awsaccount.DefaultID, Key: key, Keep: keepCaller(c.Identity), Do: requestFor(front, c.Identity), Log: c.Log, Now: time.Now,
		Check: func(by cloudformation.By) error { _, err := callerOf(c.Identity, by); return err },
	})
	if err != nil {
		return err
	}
	stacks.Register(front)
	if c.Run != nil {
		c.Run(stacks.Watch)
	}
	return nil
}

// keepCaller makes what a stack keeps of who asked for its operation.
func keepCaller(identity *identityservice.Service) func(awsfront.Caller) ([]byte, error) {
	return func(caller awsfront.Caller) ([]byte, error) {
		kept, err := identityservice.Defer(identity, caller)
		if err != nil {
			return nil, err
		}
		return json.Marshal(kept)
	}
}

// callerOf is for whom a stack makes a request: CloudFormation with the role that was passed, or who asked for the operation, as
// they are now.
func callerOf(identity *identityservice.Service, by cloudformation.By) (awsfront.Caller, error) {
	if by.RoleARN != "" {
		return identityservice.ServiceCaller(identity, identityservice.RoleOfService{Role: by.RoleARN, Service: cloudformation.Principal, Source: by.StackID})
	}
	var kept identityservice.Deferred
	if err := json.Unmarshal(by.Caller, &kept); err != nil {
		return nil, fmt.Errorf("reading for whom the stack %s acts: %w", by.StackID, err)
	}
	return identityservice.Resume(identity, kept)
}

// requestFor makes a request of a stack at the front.
func requestFor(front *awsfront.Front, identity *identityservice.Service) func(context.Context, cloudformation.By, string, string, awsshape.Object) (awsshape.Object, error) {
	return func(ctx context.Context, by cloudformation.By, service, action string, input awsshape.Object) (awsshape.Object, error) {
		caller, err := callerOf(identity, by)
		if _, known := errors.AsType[*awsfault.Error](err); err != nil && !known {
			return nil, awsfault.Errorf("AccessDenied", "%v", err)
		}
		if err != nil {
			return nil, err
		}
		in := awsfront.Inside{Caller: caller, Service: service, Action: action, Input: input, Secrets: by.Secrets}
		if by.RoleARN == "" {
			in.Via = cloudformation.Principal
		}
		return front.Do(ctx, in)
	}
}
